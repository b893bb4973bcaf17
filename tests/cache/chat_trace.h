// SPDX-License-Identifier: Apache-2.0
// Multi-turn conversations as token sequences: apps with shared system prompts, follow-up turns,
// regenerated replies, edited messages, aborted requests. The same seed gives the same trace.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
namespace hearth::testing {

struct ChatTraceOptions {
  uint64_t seed = 1;
  int num_apps = 20;
  int num_chats = 400;
  int num_open = 40;  // chats that take turns at the same time
  double mean_turns = 5;
  int regenerate_percent = 8;  // of turns: the same prompt again
  int edit_percent = 8;        // an earlier message is changed, and what followed it is gone
  int abort_percent = 8;       // the client leaves before the end; half of them while prefilling
};

struct ChatRequest {
  std::vector<Token> prompt;
  std::vector<Token> reply;
  int num_computed_at_abort = -1;  // of prompt and reply; -1: runs to its end
  uint32_t tenant = 0;             // the app
  int chat = 0;                    // requests of one chat follow each other
};

// The requests in the order in which they arrive.
std::vector<ChatRequest> MakeChatTrace(const ChatTraceOptions& options);

}  // namespace hearth::testing
