// SPDX-License-Identifier: Apache-2.0
// How the cache on disk sets RocksDB up.
#pragma once
#include <rocksdb/cache.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <memory>

#include "tiers/disk_store.h"
namespace hearth {

// One file each. In memory there are at most two of them: one being filled, one being written.
uint64_t FileBytes(int64_t max_bytes);
// What the tables should have, of so many bytes for everything.
uint64_t TableBytes(int64_t max_bytes);

// A cache of no bytes: a block that was read is in it for as long as somebody uses it. Without a
// cache RocksDB would copy every value, and its memory would be new each time.
std::shared_ptr<rocksdb::Cache> MakeReadCache();

rocksdb::ColumnFamilyOptions RecordOptions(const DiskStoreOptions& options,
                                           const std::shared_ptr<rocksdb::Cache>& cache);
rocksdb::ColumnFamilyOptions KeyOptions();
rocksdb::DBOptions StoreOptions(const DiskStoreOptions& options);

}  // namespace hearth
