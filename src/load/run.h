// SPDX-License-Identifier: Apache-2.0
// Clients that chat: turn after turn of synthetic prompts, some of which share a preamble.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/stats.h"
#include "load/target.h"
namespace hearth {

struct LoadOptions {
  int clients = 8;  // chats at a time, when `rate` is 0
  double rate = 0;  // new chats per second, whatever became of those before
  int chats = 0;    // in all; 0: two per client, or 20
  int turns = 3;    // of each
  int apps = 4;     // preambles; every chat starts with one of them
  int preamble_tokens = 128, user_tokens = 32, answer_tokens = 64;
  double think_s = 0;  // between an answer and the next turn
  uint64_t seed = 1;
  int num_chats() const { return chats > 0 ? chats : rate > 0 ? 20 : 2 * clients; }
};

struct LoadRecord {
  std::vector<LoadReply> replies;  // in the order they ended
  double seconds = 0;              // from the first request to the last end
  int num_refused = 0;
  std::string refusal;  // the last one's words
};
// Plays all chats to their end. A refused request ends its chat.
LoadRecord RunLoad(LoadTarget& target, const LoadOptions& options, const LoadClock& clock,
                   LoadBell& bell);

struct LongPromptOptions {
  int streams = 8;
  int prompts = 1;           // that come in between, all at once
  int prompt_tokens = 8000;  // of each
  int stream_prompt = 32;
  int stream_tokens = 2000;  // the most that a stream says
  int lead_tokens = 16;      // every stream has said before they come, and says after them
  double limit_s = 600;      // then the streams are cancelled whatever happened
  // Called every few seconds while prompts are computed. `computed` is of all of them together, -1
  // when nobody knows.
  std::function<void(double since_s, int computed)> on_progress;
  uint64_t seed = 1;
};
struct LongPromptRecord {
  std::vector<LoadReply> streams;
  std::vector<LoadReply> prompts;
  double from_s = 0, to_s = 0;  // they were sent; all said their first token, or time ran out
  int computed = -1;            // of their tokens until then, if the target knows
};
// `streams` decode; then long prompts come.
Result<LongPromptRecord> RunLongPrompt(LoadTarget& target, const LongPromptOptions& options,
                                       const LoadClock& clock, LoadBell& bell);

// The longest sequence that the options lead to.
int LongestSequence(const LoadOptions& options);

}  // namespace hearth
