// SPDX-License-Identifier: Apache-2.0
#include "tiers/disk_options.h"

#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstdarg>
#include <limits>
#include <memory>

#include "tiers/read_buffers.h"

namespace hearth {
namespace {

// So many small files, of quiet hours, become one at a time.
constexpr uint64_t kFilesMerged = 4;

// How far the tables may be above what they should have: one file too many, one that came before
// the writer noticed (DropNow), and two that were still in memory then.
constexpr uint64_t kFilesAbove = 4;

// RocksDB keeps no log of its own: on a full disk, writing to one that was cut off ends the process
// (an assertion in Debian's library). What fails comes back as a status, and the store tells it.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*values*/) override {}
};

rocksdb::BlockBasedTableOptions TableOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // a block that was read goes to memory of its own
  table.checksum = rocksdb::kXXH3;
  table.format_version = 5;
  return table;
}

}  // namespace

uint64_t FileBytes(int64_t max_bytes) {
  constexpr int64_t kMib = int64_t{1} << 20;
  // At most about a thousand files: a read passes the ranges of all of them.
  const int64_t most = std::max<int64_t>(32 * kMib, max_bytes / 1024);
  return static_cast<uint64_t>(std::clamp<int64_t>(max_bytes / 64, kMib / 2, most));
}

// Beside those above are as many that were dropped, and those of a merge, which are listed nowhere
// any more and still on the disk. A 64th is for keys and lists.
uint64_t TableBytes(int64_t max_bytes) {
  return static_cast<uint64_t>(max_bytes) / 64 * 63 -
         (2 * kFilesAbove + kFilesMerged) * FileBytes(max_bytes);
}

std::shared_ptr<rocksdb::Cache> MakeReadCache() {
  rocksdb::LRUCacheOptions cache;
  cache.capacity = 0;
  cache.num_shard_bits = 0;
  cache.memory_allocator = std::make_shared<ReadBuffers>();
  return rocksdb::NewLRUCache(cache);
}

rocksdb::ColumnFamilyOptions RecordOptions(const DiskStoreOptions& options,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  const uint64_t file_bytes = FileBytes(options.max_bytes);
  rocksdb::ColumnFamilyOptions out;
  out.compaction_style = rocksdb::kCompactionStyleFIFO;
  out.compaction_options_fifo = rocksdb::CompactionOptionsFIFO(TableBytes(options.max_bytes), true);
  out.level0_file_num_compaction_trigger = static_cast<int>(kFilesMerged);
  out.max_compaction_bytes = kFilesMerged * file_bytes;  // so few whole ones are never merged
  out.level0_slowdown_writes_trigger = out.level0_stop_writes_trigger =
      std::numeric_limits<int>::max();
  out.ttl = out.periodic_compaction_seconds = 0;
  out.write_buffer_size = file_bytes;
  out.max_write_buffer_number = 2;
  out.compression = rocksdb::kNoCompression;  // numbers of 16 bits that look like noise
  rocksdb::BlockBasedTableOptions table = TableOptions();
  table.no_block_cache = false;
  table.block_cache = cache;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return out;
}

rocksdb::ColumnFamilyOptions KeyOptions() {
  rocksdb::ColumnFamilyOptions out;
  out.compression = rocksdb::kNoCompression;
  out.ttl = out.periodic_compaction_seconds = 0;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions()));
  return out;
}

rocksdb::DBOptions StoreOptions(const DiskStoreOptions& options) {
  rocksdb::DBOptions out;
  out.create_if_missing = out.create_missing_column_families = true;
  out.atomic_flush = true;   // keys and records of one moment
  out.max_open_files = 512;  // also: not all files are opened at the start
  out.skip_stats_update_on_db_open = true;
  out.max_background_jobs = 2;
  out.bytes_per_sync = 1 << 20;  // no burst at the end of a file
  out.use_direct_reads = options.direct_reads;
  out.info_log = std::make_shared<NoLog>();
  out.max_manifest_file_size = 1 << 20;
  out.stats_dump_period_sec = out.stats_persist_period_sec = 0;
  // The disk is tried again when a write is, not in between.
  out.max_bgerror_resume_count = 0;
  return out;
}

}  // namespace hearth
