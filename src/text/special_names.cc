// SPDX-License-Identifier: Apache-2.0
#include "text/special_names.h"

#include <algorithm>

namespace hearth {

SpecialNames::SpecialNames(const Vocab& vocab) : is_special_(vocab.tokens.size(), false) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const TokenType type = vocab.types[i];
    if (type == TokenType::kNormal || type == TokenType::kByte) continue;
    is_special_[i] = true;
    names_.push_back({vocab.tokens[i], static_cast<Token>(i)});
  }
  names_.insert(names_.end(), vocab.aliases.begin(), vocab.aliases.end());
  std::stable_sort(names_.begin(), names_.end(),
                   [](const SpecialName& a, const SpecialName& b) { return a.token < b.token; });
  // Where two tokens have one name, the first keeps it.
  for (const SpecialName& special : names_) by_name_.emplace(special.name, special.token);
}

std::optional<Token> SpecialNames::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

}  // namespace hearth
