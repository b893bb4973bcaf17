// SPDX-License-Identifier: Apache-2.0
// What simulated clients ask in each dialect, and what they understand of the replies.
#pragma once
#include <string>

#include "http_answer.h"
#include "sim/random.h"
namespace hearth::testing {

enum class Tongue : uint8_t { kChat, kCompletions, kResponses, kMessages, kOllama };

struct Ask {
  enum class What : uint8_t { kTurn, kRetrieve, kCancel, kDelete, kForeign, kHealth };
  What what = What::kTurn;
  Tongue tongue = Tongue::kChat;
  bool streams = false, stores = false, background = false;
  std::string prompt;
  int max_tokens = 0;
  std::string id;        // of the response that is retrieved, cancelled or deleted
  std::string expected;  // the whole text that the model says to the prompt alone
  int expected_tokens = 0;
  int tries = 0;  // of a background response that was asked for again
  // Nobody will hear the end of it.
  bool is_endless = false;
  void Lengthen() {
    is_endless = what == What::kTurn && !background;
    if (is_endless) max_tokens = 300;
  }
};

// The request's bytes; `key` is whose it is.
std::string WriteAsk(const Ask& ask, const std::string& key);

// What a client makes of an answer with status 200.
struct Understood {
  std::string text;
  std::string id;         // of a response
  std::string state;      // of a response: "completed", "in_progress", ...
  std::string error;      // of a stream that ended badly
  bool is_ended = false;  // it says itself that it is complete
  int tokens = -1;        // as usage tells; -1: it does not
  std::string trouble;    // what is no reply in this dialect
};
Understood Understand(const Ask& ask, const HttpAnswer& answer);

}  // namespace hearth::testing
