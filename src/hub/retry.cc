// SPDX-License-Identifier: Apache-2.0
#include "hub/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/terminal.h"

namespace hearth {

std::chrono::milliseconds WaitAfter(const RetryPolicy& policy, int failures) {
  auto wait = policy.first_wait;
  for (int i = 1; i < failures && wait < policy.longest_wait; ++i) wait *= 2;
  return std::min(wait, policy.longest_wait);
}

std::optional<std::chrono::seconds> ParseRetryAfter(std::string_view text, int64_t now) {
  constexpr int64_t kLongest = 366 * 24 * 3600;  // whatever it says, the sum below stays sound
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) {
    if (seconds < 0) return std::nullopt;
    return std::chrono::seconds(std::min(seconds, kLongest));
  }
  const int64_t date = curl_getdate(std::string(text).c_str(), nullptr);
  if (text.empty() || date < 0) return std::nullopt;
  return std::chrono::seconds(std::clamp<int64_t>(date - now, 0, kLongest));
}

bool IsTransient(const FetchOutcome& outcome) {
  const long status = outcome.head.status;
  switch (outcome.trouble) {
    case FetchTrouble::kNoHost:
    case FetchTrouble::kNoConnection:
    case FetchTrouble::kInterrupted:
      return true;
    case FetchTrouble::kTls:
      return false;
    case FetchTrouble::kNone:
    case FetchTrouble::kStopped:
      break;
  }
  return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500 ||
         status / 100 == 2;
}

std::string Describe(const FetchOutcome& outcome) {
  const long status = outcome.head.status;
  if (outcome.trouble == FetchTrouble::kNone || outcome.trouble == FetchTrouble::kStopped) {
    if (status / 100 != 2) return Printf("HTTP %ld", status);
    return outcome.why.empty() ? "an answer that is too short" : outcome.why;
  }
  return ForTerminal(outcome.why);
}

Status FinalError(const FetchOutcome& outcome, const std::string& what) {
  const long status = outcome.head.status;
  if (outcome.trouble == FetchTrouble::kTls) {
    return Error(Code::kIo, "%s: the server's certificate is not trusted: %s", what.c_str(),
                 Describe(outcome).c_str());
  }
  if (status == 401 || status == 403) {
    return Error(
        Code::kInvalid,
        "%s: access denied (HTTP %ld): it does not exist, or it is private or gated; check "
        "the spelling, accept the model's terms on its page, and set HF_TOKEN to a token "
        "that may read it",
        what.c_str(), status);
  }
  if (status == 404 || status == 410) {
    return Error(Code::kNotFound, "%s: not found there (HTTP %ld); check the spelling",
                 what.c_str(), status);
  }
  return Error(Code::kIo, "%s: %s", what.c_str(), Describe(outcome).c_str());
}

Result<std::chrono::milliseconds> NextWait(const RetryPolicy& policy, const FetchOutcome& outcome,
                                           int failures) {
  if (failures > policy.max_retries) {
    return Error(Code::kIo, "gave up after %d attempts in a row; the last one: %s", failures,
                 Describe(outcome).c_str());
  }
  auto wait = WaitAfter(policy, failures);
  if (const auto asked = ParseRetryAfter(outcome.head.retry_after, std::time(nullptr))) {
    const bool is_long = *asked > policy.longest_wait * 10;
    // A date far from ours: one of two clocks is wrong, and nobody asked for that.
    const char first = outcome.head.retry_after.front();
    if (is_long && (first < '0' || first > '9')) return wait;
    if (is_long) {
      return Error(Code::kIo, "%s: the server asks to wait %lld s; try again after that",
                   Describe(outcome).c_str(), static_cast<long long>(asked->count()));
    }
    wait = std::max<std::chrono::milliseconds>(wait, *asked);
  }
  return wait;
}

}  // namespace hearth
