// SPDX-License-Identifier: Apache-2.0
// What readers of streams saw, and the few numbers that say how it was.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
namespace hearth {

// One request as its reader saw it. Times are seconds since the load began.
struct LoadReply {
  double sent_s = 0, ended_s = 0;
  std::vector<double> heard_s;  // per token
  std::vector<Token> tokens;    // as many as were heard
  std::string text;             // from targets that speak in words
  int num_prompt = 0, num_generated = 0, num_cached = 0, num_preempted = 0;
  int chat = 0;         // which one, in the order they began
  std::string problem;  // why it ended early; empty when it did not
  bool is_first_turn = true;
};

// By nearest rank: the p-th is the smallest value that p percent of all do not exceed.
struct Percentiles {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, most = 0;
};
Percentiles PercentilesOf(std::vector<double> values);

// Until the first token, for replies that have one.
std::vector<double> FirstTokenSeconds(const std::vector<LoadReply>& replies);
// Between tokens that a reader heard one after the other, both within [from_s, to_s].
std::vector<double> TokenGaps(const std::vector<LoadReply>& replies, double from_s = 0,
                              double to_s = 1e300);
// Between tokens, of which any part lies within [from_s, to_s]: a pause that outlasts it counts.
// One that the reader's end cut off counts up to to_s.
std::vector<double> GapsBeside(const std::vector<LoadReply>& replies, double from_s, double to_s);

}  // namespace hearth
