// SPDX-License-Identifier: Apache-2.0
// Harmony, the conversation format of gpt-oss: its control tokens, and the renderer that writes a
// conversation with them. Reading replies is in harmony_parse.h; rules and sources in
// docs/harmony.md.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/chat_format.h"
#include "text/conversation.h"
#include "text/tokenizer.h"
namespace hearth {

// The control tokens. A message is
//   start author [channel name] [constrain type] message content (end | call | return).
struct HarmonyTokens {
  Token start, message, channel, constrain;
  Token end;          // of a message; more of the same turn may follow
  Token call;         // end of a tool call; the turn pauses for the result
  Token finish;       // <|return|>: end of the turn
  Token end_of_text;  // never right inside a conversation, but models are known to write it
  static Result<HarmonyTokens> Find(const Tokenizer& tokenizer);
};

struct HarmonyOptions {
  std::string identity = "You are ChatGPT, a large language model trained by OpenAI.";
  std::string knowledge_cutoff = "2024-06";
  std::string date;  // YYYY-MM-DD; empty: the model is told none
  // Reasoning of turns that ended in a final answer is left out, as in training, unless this is
  // set. Reasoning of a turn still open (a tool's result is awaited) always stays.
  bool keeps_finished_reasoning = false;
  const AnswerFormat* answer = nullptr;  // shown as a response format; null: none
};

// The prompt, up to and including `<|start|>assistant`, or the text of the last message where that
// is continued. Every field is encoded by itself with
// Tokenizer::Encode, which cannot write a control token, so no text can end a message early.
// Fails only for a tool message without a name and a tokenizer without harmony's tokens.
Result<std::vector<Token>> RenderHarmony(const Conversation& conversation,
                                         const HarmonyOptions& options, const Tokenizer& tokenizer);

// Harmony behind the common seam. `tokenizer` must outlive what is returned.
Result<std::unique_ptr<ChatFormat>> MakeHarmonyFormat(const Tokenizer& tokenizer);

}  // namespace hearth
