// SPDX-License-Identifier: Apache-2.0
// A load's target behind a URL: any server that streams OpenAI's completions or chat completions.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "load/target.h"
namespace hearth {

struct UrlOptions {
  std::string url;    // http://host:port, with or without /v1
  std::string model;  // the name to ask for; empty: none
  std::string key;    // sent as bearer; empty: none
  // Completions when false. Prompts are words of a fixed list, about one token each.
  bool is_chat = true;
  // Not 0: prompts are random token ids below this, sent as numbers. Completions only, and only for
  // first turns: no server says the ids of its answers.
  int vocab_size = 0;
  bool ignores_end = true;  // asks for answers of full length ("ignore_eos")
};
// One thread carries all transfers. kInvalid for options that contradict each other.
Result<std::unique_ptr<LoadTarget>> MakeUrlTarget(const UrlOptions& options);

// What is asked for, as JSON.
Json UrlBody(const UrlOptions& options, const LoadRequest& request);

// The `data:` lines of an event stream, whatever pieces it comes in.
class EventLines {
 public:
  // Whole lines that `bytes` completes, without "data:" and blanks; other lines are dropped.
  std::vector<std::string> Feed(std::string_view bytes);

 private:
  std::string rest_;
};

// What one event says.
struct UrlEvent {
  std::string text;  // empty: no token
  int num_prompt = -1, num_generated = -1, num_cached = -1;
  std::string problem;
};
UrlEvent ReadUrlEvent(std::string_view json);

}  // namespace hearth
