// SPDX-License-Identifier: Apache-2.0
// The tokens that text never becomes, by name.
#pragma once
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocab.h"
namespace hearth {

// Thread: immutable.
class SpecialNames {
 public:
  // Every token of `vocab` that is not normal, bytes and the unknown token aside, and the aliases.
  explicit SpecialNames(const Vocab& vocab);
  SpecialNames(const SpecialNames&) = delete;
  SpecialNames& operator=(const SpecialNames&) = delete;
  std::optional<Token> Find(std::string_view name) const;
  bool Has(Token token) const {
    const auto i = static_cast<size_t>(token);
    return i < is_special_.size() && is_special_[i];
  }
  const std::vector<SpecialName>& names() const { return names_; }

 private:
  std::vector<SpecialName> names_;  // in order of token
  std::vector<bool> is_special_;
  std::unordered_map<std::string_view, Token> by_name_;  // views into names_
};

}  // namespace hearth
