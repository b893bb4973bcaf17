// SPDX-License-Identifier: Apache-2.0
// A tokenizer small enough to reason about: one token per byte, then harmony's control tokens,
// then a few whole words so that tokens of several bytes occur. Its text is its tokens.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
namespace hearth::testing {

class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer() {
    for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
    for (const char* name : {"<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|end|>",
                             "<|call|>", "<|return|>", "<|endoftext|>", "<|reserved_1|>"}) {
      specials_.push_back({name, static_cast<Token>(tokens_.size())});
      tokens_.emplace_back(name);
    }
    first_word_ = static_cast<Token>(tokens_.size());
    for (const char* word :
         {"analysis", "comment",         "ary",       "final", "assistant", "user",
          "system",   "developer",       "functions", "json",  "code",      " to",
          "=",        " to=functions.f", " json",     "Hello", " world",    "{\"a\":1}",
          "\n\n",     "\xe2\x82",        "python",    " code", "",          ".f",
          "?"}) {
      tokens_.emplace_back(word);
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
  bool IsSpecial(Token token) const override { return token >= 256 && token < first_word_; }
  std::string_view Bytes(Token token) const override { return tokens_[static_cast<size_t>(token)]; }
  int vocab_size() const override { return static_cast<int>(tokens_.size()); }
  const TokenizerTraits& traits() const override { return traits_; }

  // Reads control tokens by their names, everything else byte by byte. For writing down streams.
  std::vector<Token> Stream(std::string_view text) const {
    std::vector<Token> out;
    while (!text.empty()) {
      size_t taken = 0;
      for (const SpecialName& special : specials_) {
        if (!text.starts_with(special.name)) continue;
        out.push_back(special.token);
        taken = special.name.size();
      }
      if (taken == 0) {
        Encode(text.substr(0, 1), out);
        taken = 1;
      }
      text.remove_prefix(taken);
    }
    return out;
  }
  std::string Text(const std::vector<Token>& tokens) const {
    std::string out;
    for (const Token token : tokens) out += Bytes(token);
    return out;
  }

 private:
  std::vector<std::string> tokens_;
  std::vector<SpecialName> specials_;
  Token first_word_ = 0;
  TokenizerTraits traits_;
};

}  // namespace hearth::testing
