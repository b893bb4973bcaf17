// SPDX-License-Identifier: Apache-2.0
// From what a request asks of its reply to the mask that holds the model to it, whichever way the
// model writes replies.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "engine/token_mask.h"
#include "grammar/compiler.h"
#include "grammar/harmony_mask.h"
#include "grammar/text_mask.h"
#include "server/turns/api_error.h"
#include "server/turns/turn_request.h"
namespace hearth {

// Thread: any. What it was made with must outlive it.
class ReplyMasks {
 public:
  // `style` is for models without harmony's control tokens.
  static Result<std::unique_ptr<ReplyMasks>> Make(const Tokenizer& tokenizer,
                                                  const std::vector<Token>& stop_tokens,
                                                  const TextReplyStyle& style);
  // Whether its schemas are within limits: quick, and asked before anybody renders them.
  static Status Check(const TurnRequest& request);
  // Null when any text is a reply. An error names the field that cannot be enforced. Compiles: call
  // it where requests are read. `owner`: whose compiled grammars may be used.
  Result<std::unique_ptr<TokenMask>> New(const TurnRequest& request, const std::string& owner = {});
  GrammarCompilerCounts counts() const { return compiler_.counts(); }

 private:
  ReplyMasks(const Tokenizer& tokenizer, std::vector<Token> stop_tokens, TextReplyStyle style,
             std::shared_ptr<const GrammarVocabulary> vocabulary);
  Result<std::shared_ptr<const Grammar>> AnswerGrammar(const AnswerShape& answer,
                                                       const std::string& owner);
  Result<std::unique_ptr<TokenMask>> NewFor(const TurnRequest& request, const std::string& owner);

  const Tokenizer& tokenizer_;
  const std::vector<Token> stop_tokens_;
  const TextReplyStyle style_;
  GrammarCompiler compiler_;
  std::unique_ptr<HarmonyMasks> harmony_;
};

// False when its reply may be anything, whatever masks there are.
bool NeedsMask(const TurnRequest& request);
// The field that a request's mask holds its reply to, for errors.
std::string MaskField(const TurnRequest& request);
// What cannot be enforced: always the client's to change, whatever the grammar engine ran out of.
ApiError MaskError(const Status& status, const TurnRequest& request);

}  // namespace hearth
