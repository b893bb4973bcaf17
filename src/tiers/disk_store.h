// SPDX-License-Identifier: Apache-2.0
// Records of blocks in a directory, by RocksDB: the oldest go when there are too many bytes. Waits
// for the disk; whoever must not wait has a thread for it (disk_tier.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/tier.h"
#include "tiers/record_seal.h"
namespace hearth {

struct DiskStoreOptions {
  int64_t max_bytes = int64_t{1} << 30;              // of all files together
  size_t max_records = 1'000'000;                    // each costs about 100 bytes of memory
  bool direct_reads = false;                         // past the operating system's cache
  std::shared_ptr<const RecordSeal> seal = nullptr;  // none: records are written as they are
};
// Less is not worth a directory.
inline constexpr int64_t kLeastDiskBytes = int64_t{16} << 20;

// A record is written once, under the place it would have in an endless file, and a small table
// says which key has which place. Places only grow, so each file of RocksDB holds a range of them
// that no other file has, and its oldest file is always the one to drop: nothing is rewritten, and
// a read looks into one file. The table is also held in memory: Has asks nobody.
//
// There is no write-ahead log: what was not flushed when the process died is a miss.
class DiskStore {
 public:
  // Makes the directory when it is not there. kExhausted: another process has it open. kCorrupt:
  // its files contradict each other; Discard makes room for a new one. kIo: anything else.
  static Result<std::unique_ptr<DiskStore>> Open(const std::string& directory,
                                                 const DiskStoreOptions& options);
  // Removes it and all that is in it; an error when it is open somewhere.
  static Status Discard(const std::string& directory);
  ~DiskStore();  // flushes
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  // Thread: any.
  bool Has(const TierKey& key) const;
  // It is among the quarter that goes next.
  bool IsOld(const TierKey& key) const;
  // kNotFound: there is none. kCorrupt: there was, and it is forgotten. What is returned is intact
  // and says that it is the key's.
  Result<TierBytes> Get(const TierKey& key);
  std::vector<TierKey> Keys() const;  // the oldest first
  int64_t num_records() const;
  int64_t used_bytes() const;    // on disk, as of the last flush
  int64_t spared_bytes() const;  // written again for others than had put them
  int64_t bytes_of(uint32_t tenant) const;
  uint32_t TenantOf(const TierKey& key) const;  // who put it; 0 when it is not there

  // Thread: one at a time, Flush and Recover included.
  // While a tenant has more than its share (tenant_shares.h), what is put pushes its own records
  // out and not those of others: they are written again.
  Status Put(const TierKey& key, uint32_t tenant, std::span<const std::byte> record);
  // What was put until now survives the process.
  Status Flush();
  // After an error of Put or Flush: tries to go on.
  Status Recover();

 private:
  struct Impl;
  explicit DiskStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
