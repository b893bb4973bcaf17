// SPDX-License-Identifier: Apache-2.0
#include "tiers/disk_tier.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_name.h"
#include "tiers/listener_gate.h"
#include "tiers/now.h"
#include "tiers/thread_nice.h"

namespace hearth {
namespace {

// So many errors in a row, and the disk is left alone: one may be a bad sector.
constexpr int kErrorsInARow = 3;

// Whether one direction is worth trying. Thread: any.
class Health {
 public:
  bool is_good(int64_t now_us) const { return now_us >= off_until_us_; }
  // True: it is given up with this, until then.
  bool OnError(int64_t until_us, int most_in_a_row) {
    if (++in_a_row_ < most_in_a_row) return false;
    off_until_us_ = until_us;
    return !was_off_.exchange(true);
  }
  // True: it had been given up, and works again.
  bool OnSuccess() {
    in_a_row_ = 0;
    return was_off_.load() && was_off_.exchange(false);
  }
  bool was_off() const { return was_off_; }

 private:
  std::atomic<int> in_a_row_{0};
  std::atomic<int64_t> off_until_us_{0};
  std::atomic<bool> was_off_{false};
};

}  // namespace

struct DiskTier::Impl {
  Impl(std::unique_ptr<DiskStore> s, DiskTierOptions o)
      : store(std::move(s)), options(std::move(o)), budget(options.writes) {
    for (int i = 0; i < options.num_readers; ++i) readers.emplace_back([this] { Read(); });
    writer = std::thread([this] { Write(); });
  }
  ~Impl();

  struct WaitingStore {
    TransferId id = 0;
    bool is_answered = true;  // false: our own wish, nobody waits
    TierKey key;
    uint32_t tenant = 0;
    std::vector<std::byte> record;
  };

  void Read();
  void Write();
  TierDone FetchNow(TransferId id, const TierKey& key);
  void Refresh(const TierKey& key, const TierBytes& record);
  TierOutcome StoreNow(const WaitingStore& store);
  void FlushNow();
  void OnWriteError(const Status& status);
  bool Queue(WaitingStore waiting);
  void Warn(const std::string& line) const {
    if (options.warn) options.warn(line);
  }

  const std::unique_ptr<DiskStore> store;
  const DiskTierOptions options;
  Health reading, writing;
  ListenerGate gate;
  std::atomic<uint64_t> num_hits{0}, num_misses{0}, num_corrupt{0}, num_failed{0};
  std::atomic<uint64_t> num_stored{0}, num_declined{0};
  std::atomic<int64_t> bytes_read{0}, bytes_written{0}, bytes_spared{0}, read_us{0}, write_us{0};

  Mutex mu;
  CondVar fetch_came, store_came;
  std::map<TransferId, TierKey> fetches HEARTH_GUARDED_BY(mu);  // ids grow: the oldest first
  std::deque<WaitingStore> stores HEARTH_GUARDED_BY(mu);
  int64_t waiting_bytes HEARTH_GUARDED_BY(mu) = 0;
  WriteBudget budget HEARTH_GUARDED_BY(mu);
  bool stops HEARTH_GUARDED_BY(mu) = false;
  std::vector<std::thread> readers;
  std::thread writer;
};

DiskTier::Impl::~Impl() {
  {
    const MutexLock lock(mu);
    stops = true;
    fetches.clear();
  }
  fetch_came.NotifyAll();
  store_came.NotifyAll();
  for (std::thread& reader : readers) reader.join();
  writer.join();
}

void DiskTier::Impl::Read() {
  NameThread("tier-read");
  BeNice(options.niceness);
  MutexLock lock(mu);
  while (true) {
    fetch_came.Wait(mu, [&]() HEARTH_REQUIRES(mu) { return stops || !fetches.empty(); });
    if (stops) return;
    const auto [id, key] = *fetches.begin();
    fetches.erase(fetches.begin());
    lock.Unlock();
    gate.Answer(FetchNow(id, key));
    lock.Lock();
  }
}

TierDone DiskTier::Impl::FetchNow(TransferId id, const TierKey& key) {
  const int64_t began_us = NowUs();
  Result<TierBytes> record = store->Get(key);
  read_us += NowUs() - began_us;
  if (record.ok()) {
    ++num_hits;
    bytes_read += static_cast<int64_t>(record->size());
    if (reading.OnSuccess()) Warn("disk cache: reading works again");
    if (store->IsOld(key)) Refresh(key, *record);
    return {id, TierOutcome::kDone, *std::move(record), true};
  }
  const Status status = record.status();
  ++num_misses;
  if (status.code() == Code::kNotFound) return {id, TierOutcome::kMissing, {}};
  if (status.code() == Code::kCorrupt) {
    if (num_corrupt++ == 0) {
      Warn("disk cache: a damaged record was thrown away and its tokens are computed again (" +
           status.message() + "); further ones are only counted");
    }
    return {id, TierOutcome::kMissing, {}};
  }
  ++num_failed;
  if (reading.OnError(NowUs() + options.retry_after_us, kErrorsInARow)) {
    Warn("disk cache: reading fails: " + status.message() + "; serving goes on without it");
  }
  return {id, TierOutcome::kFailed, {}};
}

// What is still wanted must not go because it is old.
void DiskTier::Impl::Refresh(const TierKey& key, const TierBytes& record) {
  if (!writing.is_good(NowUs())) return;
  const uint32_t tenant = store->TenantOf(key);
  if (Queue(
          {.id = 0, .is_answered = false, .key = key, .tenant = tenant, .record = record.Copy()})) {
    store_came.NotifyOne();
  }
}

// False: there is no room, or no allowance.
bool DiskTier::Impl::Queue(WaitingStore waiting) {
  const auto bytes = static_cast<int64_t>(waiting.record.size());
  const MutexLock lock(mu);
  if (waiting_bytes + bytes > options.max_waiting_bytes ||
      !budget.Take(waiting.key.block.lo ^ static_cast<uint64_t>(waiting.key.group), waiting.tenant,
                   bytes, NowUs())) {
    ++num_declined;
    return false;
  }
  waiting_bytes += bytes;
  stores.push_back(std::move(waiting));
  return true;
}

void DiskTier::Impl::Write() {
  NameThread("tier-write");
  BeNice(options.niceness);
  MutexLock lock(mu);
  const auto rest = std::chrono::microseconds(options.flush_after_us);
  bool is_flushed = true;
  while (true) {
    const auto has_work = [&]() HEARTH_REQUIRES(mu) { return stops || !stores.empty(); };
    if (is_flushed) {
      store_came.Wait(mu, has_work);
    } else if (!store_came.WaitFor(mu, rest, has_work)) {
      lock.Unlock();
      FlushNow();
      is_flushed = true;
      lock.Lock();
      continue;
    }
    if (stores.empty()) break;  // at the end, when all is written
    const WaitingStore waiting = std::move(stores.front());
    stores.pop_front();
    lock.Unlock();
    const TierOutcome outcome = StoreNow(waiting);
    is_flushed = is_flushed && outcome != TierOutcome::kDone;
    if (waiting.is_answered) gate.Answer({waiting.id, outcome, {}});
    lock.Lock();
    waiting_bytes -= static_cast<int64_t>(waiting.record.size());
  }
  lock.Unlock();
  if (!is_flushed) FlushNow();
}

TierOutcome DiskTier::Impl::StoreNow(const WaitingStore& waiting) {
  const int64_t began_us = NowUs();
  if (!writing.is_good(began_us)) return TierOutcome::kFailed;
  if (writing.was_off()) {
    const Status recovered = store->Recover();
    if (!recovered.ok()) {
      OnWriteError(recovered);
      return TierOutcome::kFailed;
    }
  }
  const int64_t spared_before = store->spared_bytes();
  const Status status = store->Put(waiting.key, waiting.tenant, waiting.record);
  write_us += NowUs() - began_us;
  if (const int64_t spared = store->spared_bytes() - spared_before; spared > 0) {
    bytes_spared += spared;
    const MutexLock lock(mu);
    budget.Spend(spared);
  }
  if (!status.ok()) {
    OnWriteError(status);
    return TierOutcome::kFailed;
  }
  ++num_stored;
  bytes_written += static_cast<int64_t>(waiting.record.size());
  return TierOutcome::kDone;
}

// Only a flush says whether the disk takes what it is given: a store is to memory at first.
void DiskTier::Impl::FlushNow() {
  const int64_t began_us = NowUs();
  const Status status = store->Flush();
  write_us += NowUs() - began_us;
  if (!status.ok()) {
    OnWriteError(status);
  } else if (writing.OnSuccess()) {
    Warn("disk cache: writing works again");
  }
}

void DiskTier::Impl::OnWriteError(const Status& status) {
  ++num_failed;
  if (writing.OnError(NowUs() + options.retry_after_us, 1)) {
    Warn("disk cache: writing fails: " + status.message() +
         "; nothing is stored for now, and serving goes on");
  }
}

DiskTier::DiskTier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DiskTier::~DiskTier() = default;

Result<std::unique_ptr<DiskTier>> DiskTier::Open(const std::string& directory,
                                                 const DiskTierOptions& options) {
  Result<std::unique_ptr<DiskStore>> store = DiskStore::Open(directory, options.store);
  if (!store.ok() && store.status().code() == Code::kCorrupt) {
    const std::string why = store.status().message();
    HEARTH_TRY(DiskStore::Discard(directory).Within(why));
    if (options.warn) {
      options.warn("disk cache: " + directory + " was damaged (" + why +
                   "); it was thrown away, and a new one is begun");
    }
    store = DiskStore::Open(directory, options.store);
  }
  HEARTH_TRY(store.status());
  return std::unique_ptr<DiskTier>(
      new DiskTier(std::make_unique<Impl>(std::move(*store), options)));
}

void DiskTier::Connect(TierListener* listener) { impl_->gate.Connect(listener); }

bool DiskTier::MayHave(const TierKey& key) const {
  return impl_->store->Has(key) && impl_->reading.is_good(NowUs());
}

void DiskTier::Store(TransferId id, const TierKey& key, uint32_t tenant,
                     std::vector<std::byte> record) {
  if (impl_->store->Has(key)) {
    impl_->gate.Answer({id, TierOutcome::kDone, {}});  // nothing is written twice
  } else if (!impl_->writing.is_good(NowUs())) {
    impl_->gate.Answer({id, TierOutcome::kFailed, {}});
  } else if (impl_->Queue({.id = id,
                           .is_answered = true,
                           .key = key,
                           .tenant = tenant,
                           .record = std::move(record)})) {
    impl_->store_came.NotifyOne();
  } else {
    impl_->gate.Answer({id, TierOutcome::kFull, {}});
  }
}

void DiskTier::Fetch(TransferId id, const TierKey& key, uint32_t /*tenant*/) {
  bool has_room = false;
  const bool is_there = impl_->store->Has(key);
  if (is_there) {
    const MutexLock lock(impl_->mu);
    has_room = impl_->fetches.size() < impl_->options.max_waiting_fetches;
    if (has_room) impl_->fetches[id] = key;
  }
  if (has_room) {
    impl_->fetch_came.NotifyOne();
    return;
  }
  ++(is_there ? impl_->num_failed : impl_->num_misses);
  impl_->gate.Answer({id, is_there ? TierOutcome::kFailed : TierOutcome::kMissing, {}});
}

void DiskTier::Cancel(TransferId id) {
  const MutexLock lock(impl_->mu);
  impl_->fetches.erase(id);  // a store is done all the same: somebody else may want it
}

TierStats DiskTier::stats() const {
  TierStats stats;
  stats.num_hits = impl_->num_hits;
  stats.num_misses = impl_->num_misses;
  stats.num_corrupt = impl_->num_corrupt;
  stats.num_failed = impl_->num_failed;
  stats.num_stored = impl_->num_stored;
  stats.num_declined = impl_->num_declined;
  stats.bytes_read = impl_->bytes_read;
  stats.bytes_written = impl_->bytes_written;
  stats.bytes_spared = impl_->bytes_spared;
  stats.read_us = impl_->read_us;
  stats.write_us = impl_->write_us;
  stats.used_bytes = impl_->store->used_bytes();
  stats.capacity_bytes = impl_->options.store.max_bytes;
  stats.num_records = impl_->store->num_records();
  stats.is_reading = !impl_->reading.was_off();
  stats.is_writing = !impl_->writing.was_off();
  return stats;
}

}  // namespace hearth
