// SPDX-License-Identifier: Apache-2.0
// For tests of this room: a tokenizer of bytes, with whatever special tokens a test names.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"
namespace hearth {

class TestingTokenizer : public Tokenizer {
 public:
  explicit TestingTokenizer(std::vector<std::string> names, const std::string& bos = "",
                            const std::string& eos = "") {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
    for (std::string& name : names) {
      if (name == bos) traits_.bos = vocab_size();
      if (name == eos) traits_.eos = vocab_size();
      specials_.push_back({std::move(name), vocab_size()});
    }
  }
  void Encode(std::string_view text, std::vector<Token>& out) const override {
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  }
  std::optional<Token> Special(std::string_view name) const override {
    for (const SpecialName& special : specials_) {
      if (special.name == name) return special.token;
    }
    return std::nullopt;
  }
  const std::vector<SpecialName>& specials() const override { return specials_; }
  bool IsSpecial(Token token) const override { return token >= 256; }
  std::string_view Bytes(Token token) const override {
    if (token < 256) return {&bytes_[static_cast<size_t>(token)], 1};
    return specials_[static_cast<size_t>(token - 256)].name;
  }
  int vocab_size() const override { return 256 + static_cast<int>(specials_.size()); }
  const TokenizerTraits& traits() const override { return traits_; }

 private:
  std::array<char, 256> bytes_;
  std::vector<SpecialName> specials_;
  TokenizerTraits traits_;
};

}  // namespace hearth
