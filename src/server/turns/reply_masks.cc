// SPDX-License-Identifier: Apache-2.0
#include "server/turns/reply_masks.h"

#include <utility>

namespace hearth {

ReplyMasks::ReplyMasks(const Tokenizer& tokenizer, std::vector<Token> stop_tokens,
                       TextReplyStyle style, std::shared_ptr<const GrammarVocabulary> vocabulary)
    : tokenizer_(tokenizer),
      stop_tokens_(std::move(stop_tokens)),
      style_(style),
      compiler_(std::move(vocabulary)) {}

Result<std::unique_ptr<ReplyMasks>> ReplyMasks::Make(const Tokenizer& tokenizer,
                                                     const std::vector<Token>& stop_tokens,
                                                     const TextReplyStyle& style) {
  HEARTH_ASSIGN(std::shared_ptr<const GrammarVocabulary> vocabulary,
                GrammarVocabulary::Make(tokenizer));
  std::unique_ptr<ReplyMasks> masks(
      new ReplyMasks(tokenizer, stop_tokens, style, std::move(vocabulary)));
  if (HarmonyTokens::Find(tokenizer).ok()) {
    HEARTH_ASSIGN(masks->harmony_, HarmonyMasks::Make(tokenizer, masks->compiler_));
  }
  return masks;
}

Status ReplyMasks::Check(const TurnRequest& request) {
  const ReplyRules rules{.tool_choice = request.tool_choice, .named_tool = request.named_tool};
  HEARTH_ASSIGN(const auto callable, CallableTools(request.conversation.tools, rules));
  for (const ToolDefinition* tool : callable) {
    HEARTH_TRY(CheckSchema(ArgumentsSchema(*tool)).Within("tool " + Quoted(tool->name)));
  }
  if (request.answer.kind != AnswerShape::Kind::kSchema) return {};
  return CheckSchema(request.answer.schema).Within("response_format");
}

Result<std::shared_ptr<const Grammar>> ReplyMasks::AnswerGrammar(const AnswerShape& answer,
                                                                 const std::string& owner) {
  switch (answer.kind) {
    case AnswerShape::Kind::kRegex:
      return compiler_.Regex(answer.text, owner).Within(answer.field);
    case AnswerShape::Kind::kLark:
      return compiler_.Lark(answer.text, owner).Within(answer.field);
    case AnswerShape::Kind::kChoice:
      return compiler_.Choice(answer.choices, owner).Within(answer.field);
    case AnswerShape::Kind::kText:
    case AnswerShape::Kind::kObject:
    case AnswerShape::Kind::kSchema:
      break;
  }
  return std::shared_ptr<const Grammar>();
}

Result<std::unique_ptr<TokenMask>> ReplyMasks::New(const TurnRequest& request,
                                                   const std::string& owner) {
  HEARTH_ASSIGN(std::unique_ptr<TokenMask> mask, NewFor(request, owner));
  if (mask == nullptr || !request.start) return mask;
  for (const Token token : request.start->said) {
    if (mask->Accept(token)) continue;
    return Error(Code::kInvalid,
                 "the last message is the assistant's, and no reply that begins with it is of the "
                 "form that was asked for");
  }
  return mask;
}

Result<std::unique_ptr<TokenMask>> ReplyMasks::NewFor(const TurnRequest& request,
                                                      const std::string& owner) {
  const Json any_object = JsonObject{{"type", "object"}};
  ReplyRules rules;
  rules.tool_choice = request.tool_choice;
  rules.named_tool = request.named_tool;
  rules.parallel_calls = request.parallel_calls;
  rules.reasoning_tokens = request.reasoning_tokens;
  rules.owner = owner;
  if (request.answer.kind == AnswerShape::Kind::kObject) rules.answer_schema = &any_object;
  if (request.answer.kind == AnswerShape::Kind::kSchema) {
    rules.answer_schema = &request.answer.schema;
  }
  HEARTH_ASSIGN(rules.answer_grammar, AnswerGrammar(request.answer, owner));
  const std::vector<ToolDefinition>& tools = request.conversation.tools;
  // A plain prompt is no conversation: its text has no tools and no thoughts, and only what was
  // asked for is enforced.
  if (!request.plain_prompts.empty()) {
    if (request.answer.kind == AnswerShape::Kind::kText) return std::unique_ptr<TokenMask>();
    return NewTextMask({}, rules, {}, tokenizer_, stop_tokens_, compiler_);
  }
  if (harmony_ != nullptr) return harmony_->New(tools, rules);
  TextReplyStyle style = style_;
  if (request.start) style.begins_in_reasoning = request.start->begins_in_reasoning;
  return NewTextMask(tools, rules, style, tokenizer_, stop_tokens_, compiler_);
}

bool NeedsMask(const TurnRequest& request) {
  const bool is_free = request.sampling.ignores_eos &&
                       request.answer.kind == AnswerShape::Kind::kText &&
                       request.conversation.tools.empty();
  return !request.prompt_only && !is_free;
}

std::string MaskField(const TurnRequest& request) {
  return request.answer.field.empty() ? "tools" : request.answer.field;
}

ApiError MaskError(const Status& status, const TurnRequest& request) {
  const bool ran_out = status.code() == Code::kExhausted;
  ApiError error = FromStatus(ran_out ? Status(Code::kInvalid, status.message()) : status);
  const bool is_choice = error.message.starts_with("tool_choice:");
  const bool is_tool = error.message.starts_with("tool ") || error.message.starts_with("tools:");
  error.param = is_choice ? "tool_choice" : is_tool ? "tools" : MaskField(request);
  return error;
}

}  // namespace hearth
