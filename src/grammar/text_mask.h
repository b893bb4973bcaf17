// SPDX-License-Identifier: Apache-2.0
// What models other than gpt-oss may write: replies whose tool calls are text, in the styles that
// text/tool_calls.h reads. One grammar per request describes the whole reply.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/token_mask.h"
#include "grammar/compiler.h"
#include "grammar/reply_rules.h"
#include "text/tokenizer.h"
#include "text/tool_calls.h"
namespace hearth {

struct TextReplyStyle {
  ToolCallStyle calls = ToolCallStyle::kNone;
  bool begins_in_reasoning = false;  // the prompt already ended with <think>
  bool may_reason = false;           // a reply may begin with <think>...</think>
};

// The grammar of a reply, in llguidance's Lark. `tokenizer` says which tags are tokens.
// Where the style has no calls, those of tools are the generic ones. kInvalid, kUnsupported: as
// HarmonyMasks::New.
Result<std::string> ReplyGrammar(const std::vector<ToolDefinition>& tools, const ReplyRules& rules,
                                 const TextReplyStyle& style, const Tokenizer& tokenizer,
                                 const SchemaLimits& limits = {});

// A mask for a reply from its first token. Null, without an error, when there are no tools and the
// rules ask for nothing: then any text is a reply. Compiles: call it where requests are read.
Result<std::unique_ptr<TokenMask>> NewTextMask(const std::vector<ToolDefinition>& tools,
                                               const ReplyRules& rules, const TextReplyStyle& style,
                                               const Tokenizer& tokenizer,
                                               const std::vector<Token>& stop_tokens,
                                               GrammarCompiler& compiler);

}  // namespace hearth
