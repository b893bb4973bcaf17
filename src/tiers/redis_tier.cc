// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_tier.h"

#include <charconv>
#include <utility>

#include "base/mix.h"
#include "tiers/now.h"

namespace hearth {
namespace {

// The same on every machine, as replicas must agree.
uint64_t NumberOf(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return MixBits(hash);
}

// What follows `name` at the beginning of a line of INFO; 0: no number does.
int64_t NumberIn(const TierBytes& info, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(info.data()), info.size());
  const size_t at = text.find("\n" + std::string(name));
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = text.substr(at + 1 + name.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return error == std::errc() && number > 0 ? number : 0;
}

}  // namespace

// Rendezvous hashing: the server whose mix with the key is the largest.
size_t RedisTier::ServerOf(const TierKey& key, const std::vector<uint64_t>& names) {
  size_t best = 0;
  uint64_t most = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const uint64_t score = MixBits(names[i] ^ key.block.lo ^ static_cast<uint64_t>(key.group));
    if (i == 0 || score > most) {
      best = i;
      most = score;
    }
  }
  return best;
}

RedisTier::RedisTier(const RedisTierOptions& options)
    : options_(options), budget_(0, options.turnover_us) {
  for (const RedisAddress& address : options.servers) names_.push_back(NumberOf(address.name()));
  // What goes wrong is told once: the connection for stores is to the same server.
  RedisLinkOptions silent = options.link;
  silent.say = nullptr;
  const auto answer = [this](RedisAnswer came) { OnAnswer(std::move(came)); };
  for (const RedisAddress& address : options.servers) {
    auto fetches = std::make_unique<RedisLink>(address, options.link, answer);
    // Outlived by the other one: a server's stores are declared behind its fetches.
    silent.gives_way = [link = fetches.get()] { return link->is_busy(); };
    servers_.push_back({.fetches = std::move(fetches),
                        .stores = std::make_unique<RedisLink>(address, silent, answer)});
  }
}

RedisTier::~RedisTier() { servers_.clear(); }

bool RedisTier::IsKnown(const TierKey& key) const {
  const MutexLock lock(mu_);
  return known_.contains(key);
}

void RedisTier::Know(const TierKey& key) {
  const MutexLock lock(mu_);
  if (!known_.insert(key).second) return;
  known_order_.push_back(key);
  while (known_order_.size() > options_.max_known) {
    known_.erase(known_order_.front());
    known_order_.pop_front();
  }
}

void RedisTier::Unknow(const TierKey& key) {
  const MutexLock lock(mu_);
  known_.erase(key);
}

bool RedisTier::MayHave(const TierKey& key) const {
  return ServerOf(key).fetches->is_up() && IsKnown(key);
}

bool RedisTier::Wants(const TierKey& key) const {
  return ServerOf(key).stores->is_up() && !IsKnown(key);
}

bool RedisTier::Ask(TransferId id, const std::vector<TierKey>& keys) {
  std::vector<std::vector<TierKey>> by_server(servers_.size());
  for (const TierKey& key : keys) {
    if (!IsKnown(key)) by_server[ServerOf(key, names_)].push_back(key);
  }
  int num_asked = 0;
  {
    const MutexLock lock(mu_);
    asks_[id] = 1;  // ours, so that none of them is the last before all are asked
  }
  for (size_t i = 0; i < by_server.size(); ++i) {
    if (by_server[i].empty()) continue;
    {
      const MutexLock lock(mu_);
      ++asks_[id];
    }
    RedisTask task;
    task.kind = RedisTask::Kind::kAsk;
    task.id = id;
    task.keys = std::move(by_server[i]);
    const bool is_asked = servers_[i].fetches->Push(std::move(task));
    num_asked += is_asked;
    if (!is_asked) {
      const MutexLock lock(mu_);
      --asks_[id];
    }
  }
  bool is_over = false;
  {
    const MutexLock lock(mu_);
    is_over = --asks_[id] == 0;
    if (is_over) asks_.erase(id);
  }
  if (num_asked == 0) return false;
  if (is_over) gate_.Answer({id, TierOutcome::kDone, {}});
  return true;
}

// Before something is stored, now and then. Who stores nothing need not know.
void RedisTier::AskSizes() {
  if (options_.info_us == 0) return;
  const int64_t now_us = NowUs();
  for (size_t i = 0; i < servers_.size(); ++i) {
    {
      const MutexLock lock(mu_);
      int64_t& at_us = servers_[i].asked_at_us;
      if (at_us > 0 && now_us - at_us < options_.info_us) continue;
      at_us = now_us;
    }
    RedisTask task;
    task.kind = RedisTask::Kind::kInfo;
    task.id = i;
    servers_[i].stores->Push(std::move(task));
  }
}

void RedisTier::OnInfo(const RedisAnswer& answer) {
  if (answer.outcome != TierOutcome::kDone || answer.id >= servers_.size()) return;
  const MutexLock lock(mu_);
  Server& server = servers_[answer.id];
  server.used_bytes = NumberIn(answer.record, "used_memory:");
  server.max_bytes = NumberIn(answer.record, "maxmemory:");
  double all = 0;
  for (const Server& each : servers_) {
    if (each.max_bytes == 0) return budget_.Resize(0);  // there is no telling how much is a share
    all += static_cast<double>(each.max_bytes);
  }
  budget_.Resize(kTenantShare * all);
}

bool RedisTier::MayWrite(uint32_t tenant, int64_t bytes) {
  const MutexLock lock(mu_);
  if (!budget_.is_bounded()) return true;
  const int64_t now_us = NowUs();
  if (!budget_.Has(tenant, now_us)) return false;
  budget_.Spend(tenant, bytes, now_us);
  return true;
}

void RedisTier::Store(TransferId id, const TierKey& key, uint32_t tenant,
                      std::vector<std::byte> record) {
  if (IsKnown(key)) {
    gate_.Answer({id, TierOutcome::kDone, {}});
    return;
  }
  AskSizes();
  if (!MayWrite(tenant, static_cast<int64_t>(record.size()))) {
    ++num_declined_;
    gate_.Answer({id, TierOutcome::kFull, {}});
    return;
  }
  RedisTask task;
  task.kind = RedisTask::Kind::kSet;
  task.id = id;
  task.keys = {key};
  task.record = std::move(record);
  if (ServerOf(key).stores->Push(std::move(task))) return;
  ++num_declined_;
  gate_.Answer({id, TierOutcome::kFull, {}});
}

void RedisTier::Fetch(TransferId id, const TierKey& key, uint32_t /*tenant*/) {
  RedisTask task;
  task.kind = RedisTask::Kind::kGet;
  task.id = id;
  task.keys = {key};
  if (ServerOf(key).fetches->Push(std::move(task))) return;
  ++num_failed_;
  gate_.Answer({id, TierOutcome::kFailed, {}});
}

void RedisTier::Cancel(TransferId id) {
  for (const Server& server : servers_) server.fetches->Forget(id);
  const MutexLock lock(mu_);
  asks_.erase(id);
}

void RedisTier::OnAnswer(RedisAnswer answer) {
  switch (answer.kind) {
    case RedisTask::Kind::kAsk:
      return OnAsked(answer);
    case RedisTask::Kind::kGet:
      return OnFetched(std::move(answer));
    case RedisTask::Kind::kSet:
      return OnStored(answer);
    case RedisTask::Kind::kInfo:
      return OnInfo(answer);
  }
}

void RedisTier::OnAsked(const RedisAnswer& answer) {
  for (size_t i = 0; i < answer.has.size() && answer.outcome == TierOutcome::kDone; ++i) {
    if (answer.has[i]) Know(answer.keys[i]);
  }
  {
    const MutexLock lock(mu_);
    const auto found = asks_.find(answer.id);
    if (found == asks_.end() || --found->second > 0) return;
    asks_.erase(found);
  }
  gate_.Answer({answer.id, TierOutcome::kDone, {}});
}

void RedisTier::OnFetched(RedisAnswer answer) {
  read_us_ += answer.took_us;
  bytes_read_ += answer.num_bytes;
  num_corrupt_ += answer.is_corrupt;
  if (answer.outcome == TierOutcome::kDone) {
    ++num_hits_;
    Know(answer.keys[0]);
  } else {
    ++(answer.outcome == TierOutcome::kFailed ? num_failed_ : num_misses_);
    Unknow(answer.keys[0]);  // so that it is stored again
  }
  const bool is_verified = answer.outcome == TierOutcome::kDone;  // its seal is whole
  gate_.Answer({answer.id, answer.outcome, std::move(answer.record), is_verified});
}

void RedisTier::OnStored(const RedisAnswer& answer) {
  write_us_ += answer.took_us;
  if (answer.outcome == TierOutcome::kDone) {
    ++num_stored_;
    bytes_written_ += answer.num_bytes;
    Know(answer.keys[0]);
  } else {
    ++(answer.outcome == TierOutcome::kFull ? num_declined_ : num_failed_);
  }
  gate_.Answer({answer.id, answer.outcome, {}});
}

TierStats RedisTier::stats() const {
  TierStats stats;
  stats.num_hits = num_hits_;
  stats.num_misses = num_misses_;
  stats.num_corrupt = num_corrupt_;
  stats.num_failed = num_failed_;
  stats.num_stored = num_stored_;
  stats.num_declined = num_declined_;
  stats.bytes_read = bytes_read_;
  stats.bytes_written = bytes_written_;
  stats.read_us = read_us_;
  stats.write_us = write_us_;
  stats.num_records = -1;
  const MutexLock lock(mu_);
  for (const Server& server : servers_) {
    stats.used_bytes += server.used_bytes;
    stats.capacity_bytes += server.max_bytes;
    stats.is_reading = stats.is_reading && server.fetches->is_up();
    stats.is_writing = stats.is_writing && server.stores->is_up();
  }
  return stats;
}

}  // namespace hearth
