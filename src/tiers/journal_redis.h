// SPDX-License-Identifier: Apache-2.0
// The same small records as journal_files.h in the Redis servers of a shared cache, where other
// replicas find them. Whoever asks waits a moment at most.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "tiers/redis_link.h"
namespace hearth {

struct JournalRedisOptions {
  std::vector<RedisAddress> servers;  // one at least
  RedisLinkOptions link;              // with a seal
  std::chrono::milliseconds patience{250};
};

// Thread: any.
class JournalRedis {
 public:
  explicit JournalRedis(const JournalRedisOptions& options);
  void Put(const std::string& name, const std::string& record);
  std::optional<std::string> Get(const std::string& name);

 private:
  struct Waiting {
    bool is_answered = false;
    std::optional<std::string> record;
  };
  RedisLink& LinkOf(const TierKey& key);
  void OnAnswer(RedisAnswer answer);

  const JournalRedisOptions options_;
  Mutex mu_;
  CondVar answered_;
  TransferId next_id_ HEARTH_GUARDED_BY(mu_) = 1;
  std::unordered_map<TransferId, Waiting> waiting_ HEARTH_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<RedisLink>> links_;  // last: their threads use all the rest
};

}  // namespace hearth
