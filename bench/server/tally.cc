// SPDX-License-Identifier: Apache-2.0
#include "server/tally.h"

#include <algorithm>
#include <string>

namespace hearth {
namespace {

Json Percentiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    if (values.empty()) return 0.0;
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return JsonObject{{"count", static_cast<int64_t>(values.size())},
                    {"p50", at(0.5)},
                    {"p90", at(0.9)},
                    {"p99", at(0.99)},
                    {"max", at(1)},
                    {"min", at(0)}};
}

}  // namespace

void Tally::AddStream(const Reply& reply) {
  const StreamText& stream = reply.stream;
  if (!stream.has_end || stream.has_error || stream.completion_tokens != answer_tokens_) {
    ++num_short_;
    return;
  }
  const auto [at, is_new] = texts_.emplace(reply.prompt, stream.hash);
  if (!is_new && at->second != stream.hash) {
    ++num_different_;
    return;
  }
  ++num_right_;
  ended_s_.push_back(reply.ended_s);
  first_byte_s_.push_back(reply.first_byte_s);
  seconds_.push_back(reply.seconds);
}

void Tally::Add(const Reply& reply) {
  switch (reply.outcome) {
    case Reply::Outcome::kCut:
      ++num_cut_;
      return;
    case Reply::Outcome::kBroken:
      ++num_broken_;
      return;
    case Reply::Outcome::kNoConnection:
      ++num_unconnected_;
      return;
    case Reply::Outcome::kUnanswered:
      ++num_unanswered_;
      return;
    case Reply::Outcome::kWhole:
      break;
  }
  ++statuses_[reply.status];
  if (reply.status == 200) return AddStream(reply);
  if (reply.status != 429 && reply.status != 503) return;
  refusal_s_.push_back(reply.seconds);
  if (reply.retry_after_s < 1) {
    ++num_without_retry_;
  } else {
    retry_after_s_.push_back(reply.retry_after_s);
  }
}

Json Tally::AsJson(double from_s, double to_s) const {
  const auto in_window = std::count_if(ended_s_.begin(), ended_s_.end(), [&](double ended_s) {
    return ended_s >= from_s && ended_s < to_s;
  });
  JsonObject statuses;
  for (const auto& [status, count] : statuses_) {
    statuses.push_back({std::to_string(status), count});
  }
  return JsonObject{{"statuses", std::move(statuses)},
                    {"right", num_right_},
                    {"cut", num_cut_},
                    {"broken", num_broken_},
                    {"unconnected", num_unconnected_},
                    {"unanswered", num_unanswered_},
                    {"short", num_short_},
                    {"different", num_different_},
                    {"without_retry_after", num_without_retry_},
                    {"right_per_s", static_cast<double>(in_window) / (to_s - from_s)},
                    {"first_byte_s", Percentiles(first_byte_s_)},
                    {"seconds", Percentiles(seconds_)},
                    {"refusal_s", Percentiles(refusal_s_)},
                    {"retry_after_s", Percentiles(retry_after_s_)}};
}

}  // namespace hearth
