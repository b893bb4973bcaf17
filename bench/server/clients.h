// SPDX-License-Identifier: Apache-2.0
// Clients that ask for streamed completions, as many as always run or as come at a rate, and judge
// every answer.
#pragma once
#include <cstdint>

#include "base/json.h"
namespace hearth {

struct ClientOptions {
  int port = 0, num_sources = 64;
  int num_clients = 0;     // a closed loop of so many, or
  double rate = 0;         // so many new requests per second, at random
  double seconds = 10;     // then nothing new is asked
  double warm_up_s = 0;    // of them, not counted in rates
  double patience_s = 60;  // after that, for what still runs
  int prompt_tokens = 32, answer_tokens = 32;
  int num_prompts = 32;  // distinct ones; the same prompt must get the same text every time
  int vocab_size = 200'000;
  uint64_t seed = 1;
};

// What became of them, as JSON.
Json RunClients(const ClientOptions& options);

}  // namespace hearth
