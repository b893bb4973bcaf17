// SPDX-License-Identifier: Apache-2.0
// What clients heard, counted and judged.
#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "server/wire.h"
namespace hearth {

struct Reply {
  // kWhole: the answer ended as HTTP says. kCut: the connection did before. kUnanswered: nothing
  // more was waited for.
  enum class Outcome : uint8_t { kWhole, kCut, kBroken, kNoConnection, kUnanswered };
  Outcome outcome = Outcome::kWhole;
  int status = 0, prompt = 0;
  double first_byte_s = 0, seconds = 0, ended_s = 0, retry_after_s = -1;
  StreamText stream = {};
};

class Tally {
 public:
  explicit Tally(int answer_tokens) : answer_tokens_(answer_tokens) {}
  void Add(const Reply& reply);
  // Rates count what ended within the window; everything else counts all.
  Json AsJson(double from_s, double to_s) const;

 private:
  void AddStream(const Reply& reply);

  const int answer_tokens_;
  std::map<int, int64_t> statuses_;
  int64_t num_right_ = 0, num_cut_ = 0, num_broken_ = 0, num_unconnected_ = 0, num_unanswered_ = 0;
  int64_t num_short_ = 0;      // streams without their end, or with other than the tokens asked for
  int64_t num_different_ = 0;  // streams whose text is not what the same prompt got before
  int64_t num_without_retry_ = 0;            // refusals that do not say when to come back
  std::unordered_map<int, uint64_t> texts_;  // of each prompt
  std::vector<double> ended_s_;              // of right streams
  std::vector<double> first_byte_s_, seconds_, refusal_s_, retry_after_s_;
};

}  // namespace hearth
