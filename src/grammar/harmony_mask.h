// SPDX-License-Identifier: Apache-2.0
// What a gpt-oss model may write: a state machine over tokens that allows exactly the replies that
// text/harmony_parse.h reads without a repair, calls only tools that exist, and holds arguments and
// answers to their schemas.
#pragma once
#include <memory>
#include <vector>

#include "engine/token_mask.h"
#include "grammar/compiler.h"
#include "grammar/reply_rules.h"
#include "text/harmony.h"
#include "text/tokenizer.h"
namespace hearth {

// What all replies of one model share. Immutable; any thread. `tokenizer` and `compiler` must
// outlive it.
class HarmonyMasks {
 public:
  static Result<std::unique_ptr<HarmonyMasks>> Make(const Tokenizer& tokenizer,
                                                    GrammarCompiler& compiler);
  // A mask for a reply that begins after `<|start|>assistant`. Compiles what `rules` and `tools`
  // name: call it where requests are read. kInvalid, kUnsupported: a schema that cannot be
  // enforced, a tool_choice that cannot be met; the message names the tool.
  Result<std::unique_ptr<TokenMask>> New(const std::vector<ToolDefinition>& tools,
                                         const ReplyRules& rules) const;

  // Token sequences as the renderer writes them, and the mask of all tokens that are text.
  struct Words {
    HarmonyTokens tokens;
    std::vector<Token> assistant, analysis, commentary, final, space, json;
    std::vector<uint32_t> text;
  };

 private:
  HarmonyMasks(const Tokenizer& tokenizer, GrammarCompiler& compiler, Words words)
      : tokenizer_(tokenizer), compiler_(compiler), words_(std::move(words)) {}
  const Tokenizer& tokenizer_;
  GrammarCompiler& compiler_;
  const Words words_;
};

}  // namespace hearth
