// SPDX-License-Identifier: Apache-2.0
#include "grammar/text_mask.h"

#include <utility>

#include "grammar/grammar_mask.h"

namespace hearth {
namespace {

constexpr std::string_view kThink = "<think>", kEndThink = "</think>";
constexpr std::string_view kCall = "<tool_call>", kEndCall = "</tool_call>";

std::string Quote(std::string_view text) { return WriteJson(Json(text)); }

// Writes the rules of a reply one below the other.
class ReplyWriter {
 public:
  ReplyWriter(const ReplyRules& rules, const TextReplyStyle& style, const Tokenizer& tokenizer,
              const SchemaLimits& limits)
      : rules_(rules), style_(style), tokenizer_(tokenizer), limits_(limits) {}

  Result<std::string> Write(const std::vector<const ToolDefinition*>& tools) {
    const bool must_call =
        rules_.tool_choice == ToolChoice::kRequired || rules_.tool_choice == ToolChoice::kNamed;
    std::string start = WriteReasoning();
    std::string options;
    if (!tools.empty()) {
      HEARTH_TRY(WriteCalls(tools));
      options = "calls";
    }
    if (!must_call) {
      HEARTH_TRY(WriteAnswer());
      options += options.empty() ? "answer" : " | answer";
    }
    return "start: " + start + "(" + options + ")\n" + out_;
  }

 private:
  // A tag is a token where the vocabulary has it, else its characters.
  std::string Tag(std::string_view tag) const {
    return tokenizer_.Special(tag) ? std::string(tag) : Quote(tag);
  }

  // Text in which `tag` does not occur, and which does not begin as `not_first` says. What follows
  // it is a tag that is a token, or the end.
  static std::string TextWithout(std::string_view tag, std::string_view not_first) {
    std::string text = "/(?s:.*)/";
    if (!tag.empty()) text += " & ~/(?s:.*)" + std::string(tag) + "(?s:.*)/";
    if (!not_first.empty()) text += " & ~/[ \\t\\r\\n]*(" + std::string(not_first) + ")(?s:.*)/";
    return text;
  }

  std::string WriteReasoning() {
    const bool is_bounded = rules_.reasoning_tokens.has_value();
    if (!style_.begins_in_reasoning && (!style_.may_reason || (is_bounded && Budget() == 0))) {
      return "";
    }
    // Thoughts end at the first </think>, a token or its characters.
    const std::string bound = is_bounded ? "[max_tokens=" + std::to_string(Budget()) + "]" : "";
    out_ += "thought" + bound + ": THOUGHT\nTHOUGHT: " + TextWithout("<\\/think>", "") + "\n";
    if (tokenizer_.Special(kEndThink)) {
      out_ += "reasoning: thought " + Tag(kEndThink) + " GAP\n";
    } else {
      out_ += "reasoning: thoughts GAP\nthoughts[lazy]: /(?s:.*)<\\/think>/\n";
    }
    out_ += "GAP: /[ \\n]{0,3}/\n";
    if (style_.begins_in_reasoning) return "reasoning ";
    return "(" + Tag(kThink) + " reasoning)? ";
  }
  int Budget() const { return *rules_.reasoning_tokens; }

  Status WriteCalls(const std::vector<const ToolDefinition*>& tools) {
    const bool is_chatml = style_.calls == ToolCallStyle::kChatMl;
    const bool is_generic = style_.calls == ToolCallStyle::kGeneric;
    const bool has_tokens = tokenizer_.Special(kCall).has_value();
    std::string any;
    for (size_t i = 0; i < tools.size(); ++i) {
      const std::string rule = "call_" + std::to_string(i);
      any += (i == 0 ? "" : " | ") + rule;
      auto schema = PrepareSchema(ArgumentsSchema(*tools[i]), limits_);
      if (!schema.ok()) return schema.status().Within("tool " + Quoted(tools[i]->name));
      const std::string head =
          "{\"name\": " + Quote(tools[i]->name) +
          (is_chatml || is_generic ? ", \"arguments\": " : ", \"parameters\": ");
      out_ += rule + ": " + Quote(head) + " %json " + *schema + " \"}\"\n";
    }
    out_ += "body: " + any + "\n";
    if (!is_chatml) {
      const char* more = is_generic ? " (\"\\n\" body)*" : " (\"; \" body)*";
      out_ += std::string("calls: body") + (rules_.parallel_calls ? more : "") + "\n";
      return {};
    }
    out_ += "call: " + Tag(kCall) + " \"\\n\" body \"\\n\" " + Tag(kEndCall) + "\n";
    const std::string more = rules_.parallel_calls ? " (\"\\n\" call)*" : "";
    const bool may_speak_first = rules_.answer_schema == nullptr && !rules_.answer_grammar &&
                                 rules_.tool_choice == ToolChoice::kAuto;
    if (!may_speak_first) {
      out_ += "calls: call" + more + "\n";
    } else if (has_tokens) {
      out_ +=
          "calls: WORDS call" + more + "\nWORDS: " + TextWithout("<tool_call>", "<think>") + "\n";
    } else {
      // Words that end in the first tag: the tag's own characters are part of the match.
      out_ +=
          "calls: words \"\\n\" body \"\\n\" " + Tag(kEndCall) + more +
          "\nwords[lazy]: WORDS\nWORDS: /(?s:.*)<tool_call>/ & ~/[ \\t\\r\\n]*<think>(?s:.*)/\n";
    }
    return {};
  }

  Status WriteAnswer() {
    if (rules_.answer_schema != nullptr) {
      auto schema = PrepareSchema(*rules_.answer_schema, limits_);
      if (!schema.ok()) return schema.status().Within("response_format");
      out_ += "answer: %json " + *schema + "\n";
      return {};
    }
    // Nothing in it reads as a call, also where no tool may be called.
    const bool is_chatml = style_.calls == ToolCallStyle::kChatMl;
    const char* not_first = style_.calls == ToolCallStyle::kLlama3
                                ? "<think>|<\\|python_tag\\|>|\\{"
                            : style_.calls == ToolCallStyle::kGeneric ? "<think>|\\{"
                                                                      : "<think>";
    out_ +=
        "answer: ANSWER\nANSWER: " + TextWithout(is_chatml ? "<tool_call>" : "", not_first) + "\n";
    return {};
  }

  const ReplyRules& rules_;
  const TextReplyStyle& style_;
  const Tokenizer& tokenizer_;
  const SchemaLimits& limits_;
  std::string out_;
};

bool AsksForNothing(const ReplyRules& rules, const std::vector<ToolDefinition>& tools) {
  return tools.empty() && rules.answer_schema == nullptr && !rules.answer_grammar &&
         !rules.reasoning_tokens;
}

}  // namespace

Result<std::string> ReplyGrammar(const std::vector<ToolDefinition>& tools, const ReplyRules& rules,
                                 const TextReplyStyle& style, const Tokenizer& tokenizer,
                                 const SchemaLimits& limits) {
  HEARTH_ASSIGN(const auto callable, CallableTools(tools, rules));
  TextReplyStyle with_calls = style;
  if (style.calls == ToolCallStyle::kNone && !tools.empty()) {
    with_calls.calls = ToolCallStyle::kGeneric;
  }
  return ReplyWriter(rules, with_calls, tokenizer, limits).Write(callable);
}

Result<std::unique_ptr<TokenMask>> NewTextMask(const std::vector<ToolDefinition>& tools,
                                               const ReplyRules& rules, const TextReplyStyle& style,
                                               const Tokenizer& tokenizer,
                                               const std::vector<Token>& stop_tokens,
                                               GrammarCompiler& compiler) {
  HEARTH_ASSIGN(const auto callable, CallableTools(tools, rules));
  if (AsksForNothing(rules, tools)) return std::unique_ptr<TokenMask>();
  if (rules.answer_grammar != nullptr) {
    if (!callable.empty() || style.begins_in_reasoning) {
      return Error(Code::kUnsupported,
                   "a grammar for the answer beside tools or reasoning is not supported here");
    }
    return MakeGrammarMask(rules.answer_grammar, stop_tokens);
  }
  HEARTH_ASSIGN(const std::string lark,
                ReplyGrammar(tools, rules, style, tokenizer, compiler.options().schema));
  HEARTH_ASSIGN(auto grammar, compiler.OwnLark(lark, rules.owner));
  return MakeGrammarMask(std::move(grammar), stop_tokens);
}

}  // namespace hearth
