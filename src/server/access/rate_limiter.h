// SPDX-License-Identifier: Apache-2.0
// How much each key may ask for: requests and tokens per minute, replies at a time. Time is handed
// in, so that a test can make a year of it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/request.h"
namespace hearth {

// What the keys file says of one key. In all numbers 0 is "no limit".
struct KeyLimits {
  int64_t max_concurrent = 0;  // replies at a time, a request's `n` counted
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;       // of prompts and replies, as usage tells them
  int64_t max_tokens_per_request = 0;  // prompt and reply together
  Priority max_priority = Priority::kNormal;
};

// Each per-minute limit is a bucket: a whole minute's worth may come at once, and comes back
// evenly. What a reply costs is known only when it has been said, so tokens are charged afterwards,
// and a key in debt waits until it is paid. Refused requests cost nothing: who asks too often is
// not kept out by asking. Keys do not touch each other. Thread: any.
class RateLimiter {
 public:
  enum class Limit : unsigned char { kConcurrent, kRequests, kTokens };
  struct Refusal {
    Limit limit = Limit::kRequests;
    int64_t allowed = 0;  // what the limit is
    // Exact for requests and tokens, if nothing else happens; for kConcurrent how long the key's
    // replies have been taking, shared out.
    double retry_after_s = 0;
  };
  // A request came; nobody has read it yet. `limits` count for this key from now on.
  std::optional<Refusal> Arrive(const std::string& key, const KeyLimits& limits, int64_t now_us);
  struct Asked {
    int num_replies = 1;
    int64_t prompt_tokens = 0;
    int64_t at_us = 0;
  };
  // Its replies are about to be asked for. A prompt of more than a minute's worth of tokens needs
  // all of it, and leaves a debt.
  std::optional<Refusal> Start(const std::string& key, const Asked& asked);
  // The replies of one Start have ended.
  void End(const std::string& key, const Asked& asked, int64_t generated_tokens, int64_t now_us);
  // Start was for nothing: nobody took the request.
  void Undo(const std::string& key, const Asked& asked);

  struct Level {
    int64_t limit = 0, remaining = 0;
    double reset_s = 0;  // until all of it is there again
  };
  struct Standing {
    Level requests, tokens;
  };
  Standing StandingOf(const std::string& key, int64_t now_us) const;

  // Since the start, for metrics.
  struct Counts {
    std::string key;
    int64_t num_requests = 0, num_running = 0;
    int64_t prompt_tokens = 0, generated_tokens = 0;
    int64_t refused_concurrent = 0, refused_requests = 0, refused_tokens = 0;
  };
  std::vector<Counts> counts() const;

 private:
  struct Bucket {
    double used = 0;
    int64_t at_us = 0;
    double UsedAt(int64_t limit, int64_t now_us) const;
    // Seconds until `cost` more fit.
    double WaitFor(int64_t limit, double cost, int64_t now_us) const;
    void Add(int64_t limit, double cost, int64_t now_us);
  };
  struct Account {
    KeyLimits limits;
    Bucket requests, tokens;
    double mean_reply_s = 0;
    Counts counts;
  };
  static Level LevelOf(const Bucket& bucket, int64_t limit, int64_t now_us);
  static std::optional<Refusal> CheckReplies(Account& account, int num_replies);
  static std::optional<Refusal> CheckTokens(Account& account, int64_t tokens, int64_t now_us);

  mutable Mutex mu_;
  // As many as the keys file has had names.
  std::map<std::string, Account> accounts_ HEARTH_GUARDED_BY(mu_);
};

// One Start's hold on its key's limits. Dropped before End it gives back what it took.
// Thread: one at a time.
class RateHold {
 public:
  RateHold(RateLimiter& limiter, std::string key, const RateLimiter::Asked& asked)
      : limiter_(limiter), key_(std::move(key)), asked_(asked) {}
  ~RateHold() {
    if (is_open_) limiter_.Undo(key_, asked_);
  }
  RateHold(const RateHold&) = delete;
  RateHold& operator=(const RateHold&) = delete;
  // Only the first time counts.
  void End(int64_t generated_tokens, int64_t now_us);
  RateLimiter::Standing standing(int64_t now_us) const { return limiter_.StandingOf(key_, now_us); }

 private:
  RateLimiter& limiter_;
  const std::string key_;
  const RateLimiter::Asked asked_;
  bool is_open_ = true;
};

}  // namespace hearth
