// SPDX-License-Identifier: Apache-2.0
// When to try again: which failures pass, and how long to wait.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "hub/transport.h"
namespace hearth {

struct RetryPolicy {
  int max_retries = 8;  // in a row, without progress
  std::chrono::milliseconds first_wait{500};
  std::chrono::milliseconds longest_wait{30000};  // of ours; a server may ask for ten times that
};

// Doubled for every failure in a row, from 1 on.
std::chrono::milliseconds WaitAfter(const RetryPolicy& policy, int failures);

// "120" or a date, as time from `now` on (seconds since 1970); none when it is neither.
std::optional<std::chrono::seconds> ParseRetryAfter(std::string_view text, int64_t now);

// Worth another attempt: dropped connections, 408, 425, 429, and what servers say when they are
// ill.
bool IsTransient(const FetchOutcome& outcome);

// One sentence for people: "HTTP 503 from example.org", "connection reset".
std::string Describe(const FetchOutcome& outcome);

// What to do about an answer that will not change: 401, 403, 404 and the like. `what` was asked
// for.
Status FinalError(const FetchOutcome& outcome, const std::string& what);

// How long to wait before the next attempt; kIo when that is no use any more.
Result<std::chrono::milliseconds> NextWait(const RetryPolicy& policy, const FetchOutcome& outcome,
                                           int failures);

}  // namespace hearth
