// SPDX-License-Identifier: Apache-2.0
#include "tiers/journal_redis.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "tiers/journal_files.h"

namespace hearth {

JournalRedis::JournalRedis(const JournalRedisOptions& options) : options_(options) {
  HEARTH_CHECK(!options_.servers.empty() && options_.link.seal != nullptr);
  for (const RedisAddress& address : options_.servers) {
    links_.push_back(std::make_unique<RedisLink>(
        address, options_.link, [this](RedisAnswer answer) { OnAnswer(std::move(answer)); }));
  }
}

RedisLink& JournalRedis::LinkOf(const TierKey& key) {
  return *links_[key.block.lo % links_.size()];
}

void JournalRedis::Put(const std::string& name, const std::string& record) {
  const auto key = JournalKeyOf(name);
  if (!key || !LinkOf(*key).is_up()) return;
  RedisTask task;
  task.kind = RedisTask::Kind::kSet;
  task.keys = {*key};
  task.record.resize(record.size());
  if (!record.empty()) std::memcpy(task.record.data(), record.data(), record.size());
  LinkOf(*key).Push(std::move(task));
}

std::optional<std::string> JournalRedis::Get(const std::string& name) {
  const auto key = JournalKeyOf(name);
  if (!key || !LinkOf(*key).is_up()) return std::nullopt;
  RedisTask task;
  task.keys = {*key};
  {
    const MutexLock lock(mu_);
    task.id = next_id_++;
    waiting_[task.id];
  }
  const TransferId id = task.id;
  const bool is_asked = LinkOf(*key).Push(std::move(task));
  const MutexLock lock(mu_);
  if (is_asked) {
    answered_.WaitFor(mu_, options_.patience,
                      [this, id]() HEARTH_REQUIRES(mu_) { return waiting_[id].is_answered; });
  }
  std::optional<std::string> record = std::move(waiting_[id].record);
  waiting_.erase(id);
  return record;
}

void JournalRedis::OnAnswer(RedisAnswer answer) {
  if (answer.kind != RedisTask::Kind::kGet) return;
  {
    const MutexLock lock(mu_);
    const auto found = waiting_.find(answer.id);
    if (found == waiting_.end()) return;  // too late
    found->second.is_answered = true;
    if (answer.outcome == TierOutcome::kDone) {
      found->second.record.emplace(reinterpret_cast<const char*>(answer.record.data()),
                                   answer.record.size());
    }
  }
  answered_.NotifyAll();
}

}  // namespace hearth
