// SPDX-License-Identifier: Apache-2.0
// What a client wants, in no dialect: what every dialect's JSON is read into, and all that the
// engine, the grammars and the exchange need to know of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "engine/request.h"
#include "grammar/reply_rules.h"
#include "sampling/sampling_defaults.h"
#include "text/chat_format.h"
#include "text/conversation.h"
namespace hearth {

// What the answer must look like; calls of tools are held to their own schemas besides.
struct AnswerShape {
  enum class Kind : unsigned char {
    kText,    // anything
    kObject,  // any JSON object
    kSchema,  // JSON of `schema`
    kRegex,   // a text that `text` matches whole
    kLark,    // a text of the grammar `text`
    kChoice   // one of `choices`
  };
  Kind kind = Kind::kText;
  std::string field;  // where the client asked for it, for errors
  Json schema;
  std::string text;
  std::vector<std::string> choices;
  // What the client calls the schema; the name is empty when nothing is to be shown to the model.
  std::string name = {}, description = {};
};

// A text to go on from, or its tokens.
using PlainPrompt = std::variant<std::string, std::vector<Token>>;

struct TurnRequest {
  std::string model;  // as asked for; empty: whatever is served
  // Either a conversation, or plain prompts of which each has its own choices.
  Conversation conversation;
  std::vector<PlainPrompt> plain_prompts;
  // Whether a last message of the assistant's is gone on with, or another one begun after it; none:
  // gone on with where there is one.
  std::optional<bool> continues = {};
  std::optional<ReplyStart> start = {};   // of a conversation; filled in by the service
  std::string prompt_field = "messages";  // what a prompt that is too long is blamed on

  // What the request does not say stays open (sampling_defaults.h): the service fills in what is
  // recommended for the model, and the stop and end tokens.
  SamplingParams sampling = OpenSampling();
  bool has_seed = false;     // without, every choice draws afresh
  int max_tokens = 0;        // 0: as many as fit
  int num_choices = 1;       // of each prompt
  bool prompt_only = false;  // no reply: what is asked is asked of the prompt
  bool pools = false;        // the prompts' pooled states are the answer; with prompt_only
  bool echoes = false;       // the prompt's text comes before the reply's
  // Where log-probabilities of prompts were asked for (sampling.num_prompt_logprobs), for errors.
  std::string scores_field = "prompt_logprobs";
  std::vector<std::string> stops;
  AnswerShape answer;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string named_tool;  // kNamed
  bool parallel_calls = true;
  std::optional<int> reasoning_tokens;  // 0: none; absent: no bound

  bool streams = false;
  bool wants_usage = false;     // at the end of a stream
  bool wants_progress = false;  // at its beginning, while the prompt is read
  Priority priority = Priority::kNormal;
  int64_t timeout_us = 0;
  std::string cache_salt;
  // How long its model stays loaded after it; negative: for ever; none: the server's own.
  std::optional<double> keep_alive_s = {};
  // Fields that were taken and change nothing, for a header of the answer: "options.num_gpu".
  std::vector<std::string> ignored_fields = {};
};

}  // namespace hearth
