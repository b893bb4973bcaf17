// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_mask.h"

#include <algorithm>
#include <utility>

#include "grammar/bits.h"

namespace hearth {
namespace {

class GrammarMask : public TokenMask {
 public:
  GrammarMask(std::shared_ptr<const Grammar> grammar, std::vector<Token> stop_tokens)
      : matcher_(std::move(grammar)), stop_tokens_(std::move(stop_tokens)) {}

  Status Fill(std::span<uint32_t> bits) override {
    if (is_finished_) {
      std::fill(bits.begin(), bits.end(), 0);
      return {};
    }
    HEARTH_TRY(matcher_.Fill(bits));
    const Token end = matcher_.vocabulary().end();
    if (!IsAllowed(bits, end)) return {};
    Forbid(bits, end);
    for (const Token token : stop_tokens_) Allow(bits, token);
    return {};
  }

  bool Accept(Token token) override {
    if (is_finished_) return false;
    if (std::find(stop_tokens_.begin(), stop_tokens_.end(), token) == stop_tokens_.end()) {
      return token != matcher_.vocabulary().end() && matcher_.Accept(token);
    }
    is_finished_ = matcher_.is_accepting();
    return is_finished_;
  }

  bool is_finished() const override { return is_finished_; }
  std::unique_ptr<TokenMask> Clone() const override { return std::make_unique<GrammarMask>(*this); }

 private:
  GrammarMatcher matcher_;
  std::vector<Token> stop_tokens_;
  bool is_finished_ = false;
};

}  // namespace

std::unique_ptr<TokenMask> MakeGrammarMask(std::shared_ptr<const Grammar> grammar,
                                           std::vector<Token> stop_tokens) {
  return std::make_unique<GrammarMask>(std::move(grammar), std::move(stop_tokens));
}

}  // namespace hearth
