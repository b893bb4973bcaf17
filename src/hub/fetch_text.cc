// SPDX-License-Identifier: Apache-2.0
#include "hub/fetch_text.h"

#include <algorithm>
#include <thread>

namespace hearth {
namespace {

using Clock = std::chrono::steady_clock;

class TextSink final : public FetchSink {
 public:
  explicit TextSink(size_t max_bytes) : max_bytes_(max_bytes) {}
  bool OnHead(const HttpHead& head) override {
    last_byte_ = Clock::now();
    return head.status == 200;
  }
  bool OnBytes(std::span<const std::byte> bytes) override {
    last_byte_ = Clock::now();
    is_too_long_ = bytes.size() > max_bytes_ - body_.size();
    if (is_too_long_) return false;
    body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
  Clock::time_point last_byte() const { return last_byte_; }
  bool is_too_long() const { return is_too_long_; }
  std::string& body() { return body_; }

 private:
  const size_t max_bytes_;
  std::string body_;
  bool is_too_long_ = false;
  Clock::time_point last_byte_ = Clock::now();
};

FetchOutcome FetchOnce(Transport& transport, const HttpFetch& fetch, TextSink& sink,
                       std::chrono::milliseconds stall_time) {
  transport.Begin(0, fetch, sink);
  while (true) {
    for (FetchOutcome& outcome : transport.Wait(std::chrono::milliseconds(50))) {
      if (outcome.slot == 0) return std::move(outcome);
    }
    if (Clock::now() - sink.last_byte() < stall_time) continue;
    transport.Cancel(0);
    return {.trouble = FetchTrouble::kInterrupted, .why = "no answer in time"};
  }
}

}  // namespace

Result<TextAnswer> FetchText(Transport& transport, const HttpFetch& fetch, const std::string& what,
                             size_t max_bytes, const RetryPolicy& retry,
                             std::chrono::milliseconds stall_time) {
  for (int failures = 1;; ++failures) {
    TextSink sink(max_bytes);
    FetchOutcome outcome = FetchOnce(transport, fetch, sink, stall_time);
    if (sink.is_too_long()) {
      return Error(Code::kExhausted, "%s: the answer is longer than %zu bytes", what.c_str(),
                   max_bytes);
    }
    if (outcome.trouble == FetchTrouble::kNone && outcome.head.status == 200) {
      return TextAnswer{std::move(outcome.head), std::move(sink.body())};
    }
    if (!IsTransient(outcome)) return FinalError(outcome, what);
    // Without a network there is no use in waiting long: two more attempts, for a network that is
    // just coming up.
    const bool is_offline =
        outcome.trouble == FetchTrouble::kNoHost || outcome.trouble == FetchTrouble::kNoConnection;
    RetryPolicy patience = retry;
    if (is_offline) patience.max_retries = std::min(retry.max_retries, 2);
    HEARTH_ASSIGN(const auto wait, NextWait(patience, outcome, failures).Within(what));
    std::this_thread::sleep_for(wait);
  }
}

}  // namespace hearth
