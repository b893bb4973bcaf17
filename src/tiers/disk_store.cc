// SPDX-License-Identifier: Apache-2.0
#include "tiers/disk_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "kv/block_record.h"
#include "kv/tenant_shares.h"
#include "tiers/buffer_pool.h"
#include "tiers/disk_names.h"
#include "tiers/disk_options.h"

namespace hearth {
namespace {

constexpr char kRecords[] = "records";
// Records that are written again for each new one, at most: more than new ones push towards the end
// in the worst case, which is that a spared tenant wrote all of its half in one go.
constexpr int kSparedPerPut = 4;
constexpr int kLooksPerPut = 64;
// So often a record is spared without being read: who has gone leaves its share in the end.
constexpr uint8_t kMaxSpared = 4;

Status StatusOf(const rocksdb::Status& status) {
  if (status.ok()) return Status();
  const std::string text = status.ToString();
  if (text.find("/LOCK") != std::string::npos) {
    return Error(Code::kExhausted, "another process has it open");
  }
  const bool is_io = status.IsIOError() && !status.IsPathNotFound();
  return Error(is_io ? Code::kIo : Code::kCorrupt, "%s", Quoted(text).c_str());
}

// A value in RocksDB's memory.
struct Pinned {
  std::shared_ptr<rocksdb::Cache> cache;  // outlives the value, as it may the store
  rocksdb::PinnableSlice value;
  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(value.data(), value.size()));
  }
};

}  // namespace

struct DiskStore::Impl {
  explicit Impl(const DiskStoreOptions& o)
      : options(o), shares(static_cast<int64_t>(TableBytes(o.max_bytes))) {
    write.disableWAL = true;
  }
  ~Impl();
  Status Load();
  // What RocksDB dropped is forgotten; asks for its list of files.
  void Prune();
  // Bytes of all files, and the first place that is in one.
  std::optional<Place> Measure();
  void DropNow(Place oldest);
  void Forget(const TierKey& key, Place place);
  void DropOldest(Place horizon, rocksdb::WriteBatch& gone);
  // Writes a record as it is at the next place; the rest of `entry` is the caller's.
  Status Append(const TierKey& key, DiskEntry entry, const rocksdb::Slice& record);
  void SpareOldest();
  std::optional<TierKey> NextSpared(int& num_looks, DiskEntry& entry);
  void Know(const TierKey& key, const DiskEntry& entry) HEARTH_REQUIRES(mu);
  void Unknow(const TierKey& key) HEARTH_REQUIRES(mu);
  bool IsOldPlace(Place place) const HEARTH_REQUIRES(mu) {
    return newest - place > TableBytes(options.max_bytes) / 4 * 3;
  }

  // The record in what was read, once it is found to be the key's and whole.
  Result<TierBytes> Verify(const TierKey& key, std::shared_ptr<Pinned> got) const;

  const DiskStoreOptions options;
  const std::shared_ptr<rocksdb::Cache> cache = MakeReadCache();
  const std::shared_ptr<BufferPool> opened = std::make_shared<BufferPool>();  // of sealed records
  rocksdb::WriteOptions write;
  rocksdb::ReadOptions read;
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::ColumnFamilyHandle* keys = nullptr;  // freed before `db`
  rocksdb::ColumnFamilyHandle* records = nullptr;
  std::atomic<int64_t> used_bytes{0}, spared_bytes{0};
  // Of the writer alone.
  Place looked_at = 0;  // by SpareOldest, and all before it
  Place next = 1;
  int64_t unpruned_bytes = 0;
  uint64_t record_bytes = 0;  // of the files with records
  bool is_flushed = true;

  mutable Mutex mu;
  std::unordered_map<TierKey, DiskEntry, TierKeyHash> places HEARTH_GUARDED_BY(mu);
  TenantShares shares HEARTH_GUARDED_BY(mu);
  // Also those that have another place by now.
  std::deque<std::pair<Place, TierKey>> order HEARTH_GUARDED_BY(mu);
  Place newest HEARTH_GUARDED_BY(mu) = 0;
};

DiskStore::Impl::~Impl() {
  if (db == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : {keys, records}) {
    if (handle != nullptr) db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  db->Close().PermitUncheckedError();
}

Status DiskStore::Impl::Load() {
  rocksdb::ColumnFamilyMetaData files;
  db->GetColumnFamilyMetaData(records, &files);
  for (const auto& level : files.levels) {
    for (const auto& file : level.files) next = std::max(next, PlaceNamed(file.largestkey) + 1);
  }
  {
    const MutexLock lock(mu);
    const std::unique_ptr<rocksdb::Iterator> each(db->NewIterator(read, keys));
    for (each->SeekToFirst(); each->Valid(); each->Next()) {
      const auto key = KeyNamed(each->key().ToStringView());
      const DiskEntry entry = EntryIn(each->value().ToStringView());
      if (!key || entry.place == 0) continue;
      order.emplace_back(entry.place, *key);
      Know(*key, entry);
    }
    HEARTH_TRY(StatusOf(each->status()));
    std::ranges::sort(order);
    if (!order.empty()) next = std::max(next, order.back().first + 1);
    newest = next;
  }
  Prune();
  return Status();
}

void DiskStore::Impl::Know(const TierKey& key, const DiskEntry& entry) {
  Unknow(key);
  places[key] = entry;
  shares.Add(entry.tenant, entry.bytes);
}

void DiskStore::Impl::Unknow(const TierKey& key) {
  const auto found = places.find(key);
  if (found == places.end()) return;
  shares.Remove(found->second.tenant, found->second.bytes);
  places.erase(found);
}

void DiskStore::Impl::DropOldest(Place horizon, rocksdb::WriteBatch& gone) {
  const MutexLock lock(mu);
  while (!order.empty() && (order.front().first < horizon || places.size() > options.max_records)) {
    const auto [place, key] = order.front();
    order.pop_front();
    const auto found = places.find(key);
    if (found == places.end() || found->second.place != place) continue;
    Unknow(key);
    gone.Delete(keys, NameOfKey(key)).PermitUncheckedError();
  }
}

// RocksDB drops the oldest files when it has time for it, which on a busy machine may be too late.
// This waits until it has.
void DiskStore::Impl::DropNow(Place oldest) {
  // Without a range what is in memory would be flushed first; whichever it is, the oldest file
  // goes.
  const std::string name = NameOfPlace(oldest);
  const rocksdb::Slice range(name);
  // What does not work now does not work in the background either, and there it is told.
  db->CompactRange(rocksdb::CompactRangeOptions(), records, &range, &range).PermitUncheckedError();
}

std::optional<Place> DiskStore::Impl::Measure() {
  rocksdb::ColumnFamilyMetaData of_records, of_keys;
  db->GetColumnFamilyMetaData(records, &of_records);
  db->GetColumnFamilyMetaData(keys, &of_keys);
  used_bytes = static_cast<int64_t>(of_records.size + of_keys.size);
  record_bytes = of_records.size;
  std::optional<Place> horizon;
  for (const auto& level : of_records.levels) {
    for (const auto& file : level.files) {
      const Place first = PlaceNamed(file.smallestkey);
      horizon = std::min(horizon.value_or(first), first);
    }
  }
  return horizon;
}

void DiskStore::Impl::Prune() {
  unpruned_bytes = 0;
  std::optional<Place> horizon = Measure();
  if (horizon && record_bytes > TableBytes(options.max_bytes) + FileBytes(options.max_bytes)) {
    DropNow(*horizon);
    horizon = Measure();
  }
  rocksdb::WriteBatch gone;
  DropOldest(horizon.value_or(0), gone);  // without files all of it is still in memory
  // A key that comes back after a crash finds no record, and is forgotten then.
  if (gone.Count() > 0) db->Write(write, &gone).PermitUncheckedError();
}

void DiskStore::Impl::Forget(const TierKey& key, Place place) {
  {
    const MutexLock lock(mu);
    const auto found = places.find(key);
    if (found == places.end() || found->second.place != place) return;
    Unknow(key);
  }
  db->Delete(write, keys, NameOfKey(key)).PermitUncheckedError();
}

// The next old record of a tenant that is spared; none: not now.
std::optional<TierKey> DiskStore::Impl::NextSpared(int& num_looks, DiskEntry& entry) {
  const MutexLock lock(mu);
  while (num_looks-- > 0) {
    const auto after =
        std::ranges::upper_bound(order, looked_at, {}, &std::pair<Place, TierKey>::first);
    if (after == order.end() || !IsOldPlace(after->first)) return std::nullopt;
    looked_at = after->first;
    const auto found = places.find(after->second);
    if (found == places.end() || found->second.place != after->first) continue;
    entry = found->second;
    if (entry.num_spared < kMaxSpared && shares.Spares(entry.tenant)) return after->second;
  }
  return std::nullopt;
}

// What is written pushes the oldest out, whoever's it is. So while one tenant has more than its
// share, the old records of the others are written again, as they are, and only its own go. What
// that writes is at most as much again as what is new: the others have no more than half.
void DiskStore::Impl::SpareOldest() {
  int num_looks = kLooksPerPut;
  DiskEntry entry;
  for (int i = 0; i < kSparedPerPut; ++i) {
    const auto key = NextSpared(num_looks, entry);
    if (!key) return;
    rocksdb::PinnableSlice value;
    if (!db->Get(read, records, NameOfPlace(entry.place), &value).ok())
      continue;  // found out when read
    ++entry.num_spared;
    if (!Append(*key, entry, value).ok()) return;
    spared_bytes += entry.bytes;
  }
}

Status DiskStore::Impl::Append(const TierKey& key, DiskEntry entry, const rocksdb::Slice& record) {
  entry.place = next;
  entry.bytes = static_cast<int64_t>(record.size());
  rocksdb::WriteBatch batch(record.size() + 128);
  HEARTH_TRY(StatusOf(batch.Put(records, NameOfPlace(entry.place), record)));
  HEARTH_TRY(StatusOf(batch.Put(keys, NameOfKey(key), ValueOf(entry))));
  is_flushed = false;
  HEARTH_TRY(StatusOf(db->Write(write, &batch)));
  next = entry.place + std::max<size_t>(record.size(), 1);
  unpruned_bytes += entry.bytes;
  {
    // Known only now that it is there.
    const MutexLock lock(mu);
    Know(key, entry);
    order.emplace_back(entry.place, key);
    newest = next;
  }
  if (unpruned_bytes >= static_cast<int64_t>(FileBytes(options.max_bytes))) Prune();
  return Status();
}

DiskStore::DiskStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DiskStore::~DiskStore() {
  const Status status = Flush();
  (void)status;  // what is lost is a miss
}

Result<std::unique_ptr<DiskStore>> DiskStore::Open(const std::string& directory,
                                                   const DiskStoreOptions& options) {
  if (options.max_bytes < kLeastDiskBytes) {
    return Error(
        Code::kInvalid, "%lld bytes are too few for a cache on disk: expected %lld or more",
        static_cast<long long>(options.max_bytes), static_cast<long long>(kLeastDiskBytes));
  }
  // Work in the background is nobody's hurry, and the processors have other things to do.
  for (const auto pool : {rocksdb::Env::LOW, rocksdb::Env::HIGH}) {
    rocksdb::Env::Default()->LowerThreadPoolCPUPriority(pool);
  }
  auto impl = std::make_unique<Impl>(options);
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, KeyOptions()},
      {kRecords, RecordOptions(options, impl->cache)}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  HEARTH_TRY(
      StatusOf(rocksdb::DB::Open(StoreOptions(options), directory, families, &handles, &db)));
  impl->db.reset(db);
  impl->keys = handles.at(0);
  impl->records = handles.at(1);
  HEARTH_TRY(impl->Load());
  return std::unique_ptr<DiskStore>(new DiskStore(std::move(impl)));
}

Status DiskStore::Discard(const std::string& directory) {
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{{kRecords, KeyOptions()}};
  const rocksdb::Status destroyed = rocksdb::DestroyDB(directory, rocksdb::Options(), families);
  const Status status = StatusOf(destroyed);
  // It is too damaged for RocksDB to say what belongs to it; that it is not open it knows first.
  if (status.code() == Code::kExhausted) return status;
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) return Error(Code::kIo, "removing %s: %s", directory.c_str(), error.message().c_str());
  return Status();
}

bool DiskStore::Has(const TierKey& key) const {
  const MutexLock lock(impl_->mu);
  return impl_->places.contains(key);
}

bool DiskStore::IsOld(const TierKey& key) const {
  const MutexLock lock(impl_->mu);
  const auto found = impl_->places.find(key);
  return found != impl_->places.end() && impl_->IsOldPlace(found->second.place);
}

Result<TierBytes> DiskStore::Impl::Verify(const TierKey& key, std::shared_ptr<Pinned> got) const {
  std::span<const std::byte> bytes = got->bytes();
  std::shared_ptr<const void> owner = std::move(got);
  const bool is_sealed = options.seal != nullptr;
  if (is_sealed) {
    if (bytes.size() < RecordSeal::kExtraBytes) return Error(Code::kCorrupt, "the record is cut");
    // Not in place: somebody else may be reading the same block.
    Buffer out = TakeBuffer(opened, bytes.size() - RecordSeal::kExtraBytes);
    if (out.memory == nullptr) return Error(Code::kExhausted, "no memory");
    if (!options.seal->OpenTo(key, bytes, out.bytes.data())) {
      return Error(Code::kCorrupt, "the record is not as it was encrypted");
    }
    bytes = out.bytes;
    owner = std::move(out.memory);
  }
  if (!IsRecordOf(bytes, key)) return Error(Code::kCorrupt, "the record is another block's");
  if (!is_sealed && !IsIntact(bytes)) {  // a seal says that as well
    return Error(Code::kCorrupt, "the record is not as it was written");
  }
  return TierBytes(bytes, std::move(owner));
}

Result<TierBytes> DiskStore::Get(const TierKey& key) {
  Place place = 0;
  {
    const MutexLock lock(impl_->mu);
    const auto found = impl_->places.find(key);
    if (found == impl_->places.end()) return Error(Code::kNotFound, "no such record");
    place = found->second.place;
    found->second.num_spared = 0;  // somebody wants it
  }
  auto read = std::make_shared<Pinned>();
  read->cache = impl_->cache;
  const rocksdb::Status got =
      impl_->db->Get(impl_->read, impl_->records, NameOfPlace(place), &read->value);
  if (got.IsNotFound()) {
    impl_->Forget(key, place);
    return Error(Code::kNotFound, "no such record");
  }
  const Status status = StatusOf(got);
  Result<TierBytes> record =
      status.ok() ? impl_->Verify(key, std::move(read)) : Result<TierBytes>(status);
  if (record.status().code() == Code::kCorrupt) impl_->Forget(key, place);
  return record;
}

std::vector<TierKey> DiskStore::Keys() const {
  std::vector<TierKey> out;
  const MutexLock lock(impl_->mu);
  for (const auto& [place, key] : impl_->order) {
    const auto found = impl_->places.find(key);
    if (found != impl_->places.end() && found->second.place == place) out.push_back(key);
  }
  return out;
}

int64_t DiskStore::num_records() const {
  const MutexLock lock(impl_->mu);
  return static_cast<int64_t>(impl_->places.size());
}

int64_t DiskStore::used_bytes() const { return impl_->used_bytes; }
int64_t DiskStore::spared_bytes() const { return impl_->spared_bytes; }

uint32_t DiskStore::TenantOf(const TierKey& key) const {
  const MutexLock lock(impl_->mu);
  const auto found = impl_->places.find(key);
  return found == impl_->places.end() ? 0 : found->second.tenant;
}

int64_t DiskStore::bytes_of(uint32_t tenant) const {
  const MutexLock lock(impl_->mu);
  return impl_->shares.bytes(tenant);
}

Status DiskStore::Put(const TierKey& key, uint32_t tenant, std::span<const std::byte> record) {
  std::vector<std::byte> sealed;
  if (impl_->options.seal != nullptr) {
    sealed = impl_->options.seal->Seal(key, record);
    if (sealed.empty()) return Error(Code::kExhausted, "a record cannot be encrypted");
    record = sealed;
  }
  const rocksdb::Slice value(reinterpret_cast<const char*>(record.data()), record.size());
  HEARTH_TRY(impl_->Append(key, {.tenant = tenant}, value));
  impl_->SpareOldest();
  return Status();
}

Status DiskStore::Flush() {
  if (impl_->is_flushed) return Status();
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;  // there is one writer, and it is here
  HEARTH_TRY(StatusOf(impl_->db->Flush(options, {impl_->keys, impl_->records})));
  impl_->is_flushed = true;
  impl_->Prune();
  return Status();
}

Status DiskStore::Recover() { return StatusOf(impl_->db->Resume()); }

}  // namespace hearth
