// SPDX-License-Identifier: Apache-2.0
// Blocks on a disk, behind kv/tier.h: what was computed before a restart, or before memory was
// full, is read instead of computed again.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "kv/tier.h"
#include "tiers/disk_store.h"
#include "tiers/write_budget.h"
namespace hearth {

struct DiskTierOptions {
  DiskStoreOptions store;
  WriteAllowance writes;
  int num_readers = 4;  // enough to keep a disk of today busy
  // Of all its threads. Beside fetches without a rest decoding loses 73 % at 0, 8 % at 19, where
  // they still bring 365 MB/s (docs/evidence/cache-disk.md).
  int niceness = 19;
  size_t max_waiting_fetches = 4096;              // then a fetch fails at once
  int64_t max_waiting_bytes = int64_t{64} << 20;  // of records to be written; then kFull
  int64_t flush_after_us = 3'000'000;             // of rest: what a crash loses
  int64_t retry_after_us = 30'000'000;            // how long a disk with errors is left alone
  // One line for whoever runs this, when something changed. Thread: any.
  std::function<void(const std::string&)> warn;
};

class DiskTier : public Tier {
 public:
  // As DiskStore::Open; but a damaged store is replaced by an empty one, with a line of warning.
  static Result<std::unique_ptr<DiskTier>> Open(const std::string& directory,
                                                const DiskTierOptions& options);
  ~DiskTier() override;  // writes what waits, flushes

  std::string_view name() const override { return "disk"; }
  void Connect(TierListener* listener) override;
  bool MayHave(const TierKey& key) const override;
  void Store(TransferId id, const TierKey& key, uint32_t tenant,
             std::vector<std::byte> record) override;
  void Fetch(TransferId id, const TierKey& key, uint32_t tenant) override;
  void Cancel(TransferId id) override;
  TierStats stats() const override;

 private:
  struct Impl;
  explicit DiskTier(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
