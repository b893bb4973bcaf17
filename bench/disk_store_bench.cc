// SPDX-License-Identifier: Apache-2.0
// What the cache on disk costs beside the bare disk: bytes written a byte, reads beside pread, the
// time to open; with direct reads, encrypted, and with blob files.
// disk_store_bench DIR GIB [TURNOVERS [fifo|direct|sealed|blobs]]
#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "base/mix.h"
#include "kv/block_record.h"
#include "tiers/disk_store.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;

constexpr size_t kRecordBytes = 192 << 10;  // of gpt-oss-20b: 16 tokens of 12 layers
constexpr int kReads = 1500;

double Since(Steady::time_point began) {
  return std::chrono::duration<double>(Steady::now() - began).count();
}

TierKey KeyOf(uint64_t number) { return {{MixBits(number + 1), MixBits(number + 77)}, 0}; }

// Noise that no disk can compress; summed up as the engine does.
std::vector<std::byte> RecordOf(uint64_t number) {
  static const std::vector<std::byte> noise = [] {
    std::vector<std::byte> bytes(2 * kRecordBytes);
    std::mt19937_64 random(7);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    return bytes;
  }();
  const std::vector<Token> tokens(16, static_cast<Token>(number));
  std::vector<std::byte> record = MakeRecord(KeyOf(number), tokens, kRecordBytes);
  const auto from = std::span(noise).subspan(MixBits(number) % kRecordBytes, kRecordBytes);
  std::copy(from.begin(), from.end(), PayloadOf(record, kRecordBytes).begin());
  FinishRecord(record);
  return record;
}

// Bytes that this process gave to disks so far.
double WrittenBytes() {
  std::ifstream io("/proc/self/io");
  for (std::string word; io >> word;) {
    double value = 0;
    if (word == "write_bytes:" && io >> value) return value;
  }
  return 0;
}

std::vector<fs::path> FilesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& each : fs::directory_iterator(folder)) {
    const std::string kind = each.path().extension().string();
    if (kind == ".sst" || kind == ".blob") files.push_back(each.path());
  }
  return files;
}

// From the operating system's memory.
void DropCached(const fs::path& folder) {
  for (const fs::path& file : FilesOf(folder)) {
    const int descriptor = open(file.c_str(), O_RDONLY);
    fdatasync(descriptor);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
  }
}

double InMib(double bytes) { return bytes / (1 << 20); }

// `read(random, buffer)` reads about a record and says how many bytes it got; MiB/s of all threads
// together.
template <typename Read>
double Rate(int num_threads, const Read& read) {
  std::atomic<int64_t> bytes{0};
  std::atomic<int> left{kReads};
  const auto began = Steady::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(static_cast<uint64_t>(i) * 1000 + 5);
      std::vector<std::byte> buffer(kRecordBytes);
      while (left-- > 0) bytes += static_cast<int64_t>(read(random, buffer));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return InMib(static_cast<double>(bytes)) / Since(began);
}

using Buffer = std::vector<std::byte>;

// Into memory that is used again: the most that can be asked of anybody.
double BareRate(const fs::path& folder, int num_threads) {
  std::vector<int> descriptors;
  std::vector<uint64_t> sizes;
  for (const fs::path& file : FilesOf(folder)) {
    if (fs::file_size(file) < 4 * kRecordBytes) continue;
    sizes.push_back(fs::file_size(file));
    descriptors.push_back(open(file.c_str(), O_RDONLY));
  }
  const double rate = Rate(num_threads, [&](std::mt19937_64& random, Buffer& buffer) -> size_t {
    const size_t file = random() % sizes.size();
    const auto at = static_cast<off_t>(random() % (sizes[file] - kRecordBytes));
    const ssize_t got = pread(descriptors[file], buffer.data(), buffer.size(), at);
    return got > 0 ? static_cast<size_t>(got) : 0;
  });
  for (const int descriptor : descriptors) close(descriptor);
  return rate;
}

template <typename Read>
void PrintReads(const char* name, const fs::path& folder, const Read& read) {
  for (const bool is_cold : {true, false}) {
    for (const int num_threads : {1, 8}) {
      if (is_cold) DropCached(folder);
      const double ours = Rate(num_threads, read);
      if (is_cold) DropCached(folder);
      const double bare = BareRate(folder, num_threads);
      std::printf("%-22s %s, %d reader%s: %7.0f MiB/s, bare pread %7.0f MiB/s, %3.0f %%\n", name,
                  is_cold ? "cold" : "warm", num_threads, num_threads > 1 ? "s" : " ", ours, bare,
                  100 * ours / bare);
    }
  }
}

void PrintWrites(const char* name, const fs::path& folder, uint64_t count, double before,
                 double seconds) {
  const double given = static_cast<double>(count) * kRecordBytes;
  int64_t on_disk = 0;
  for (const fs::path& file : FilesOf(folder)) on_disk += static_cast<int64_t>(fs::file_size(file));
  std::printf("%-22s wrote %.0f MiB at %.0f MiB/s: %.2f bytes written a byte, %.0f MiB on disk\n",
              name, InMib(given), InMib(given) / seconds, (WrittenBytes() - before) / given,
              InMib(static_cast<double>(on_disk)));
}

void MeasureStore(const char* name, const fs::path& folder, const DiskStoreOptions& options,
                  uint64_t count) {
  {
    const double before = WrittenBytes();
    const auto began = Steady::now();
    auto store = DiskStore::Open(folder.string(), options);
    if (!store.ok()) return void(std::printf("%s\n", store.status().message().c_str()));
    for (uint64_t number = 0; number < count; ++number) {
      if (!(*store)->Put(KeyOf(number), 0, RecordOf(number)).ok()) std::printf("a write failed\n");
    }
    if (!(*store)->Flush().ok()) std::printf("a flush failed\n");
    PrintWrites(name, folder, count, before, Since(began));
  }
  DropCached(folder);
  const auto began = Steady::now();
  auto store = DiskStore::Open(folder.string(), options);
  if (!store.ok()) return void(std::printf("%s\n", store.status().message().c_str()));
  const std::vector<TierKey> keys = (*store)->Keys();
  std::printf("%-22s opened in %.3f s, cold: %zu records, %zu files\n", name, Since(began),
              keys.size(), FilesOf(folder).size());
  PrintReads(name, folder, [&](std::mt19937_64& random, Buffer&) -> size_t {
    Result<TierBytes> record = (*store)->Get(keys[random() % keys.size()]);
    return record.ok() ? record->size() : 0;
  });
}

// Values in blob files, the oldest deleted by key, room made by RocksDB's garbage collection.
void MeasureBlobs(const fs::path& folder, int64_t max_bytes, uint64_t count) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.enable_blob_files = true;
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 0.5;
  options.blob_garbage_collection_force_threshold = 0.5;
  options.blob_file_size = 64 << 20;
  options.write_buffer_size = 32 << 20;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(options, folder.string(), &opened).ok()) return;
  const std::unique_ptr<rocksdb::DB> db(opened);
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  const auto name = [](uint64_t number) {
    const TierKey key = KeyOf(number);
    return std::string(reinterpret_cast<const char*>(&key.block), sizeof(key.block));
  };
  const uint64_t room = static_cast<uint64_t>(max_bytes) / kRecordBytes;
  const double before = WrittenBytes();
  const auto began = Steady::now();
  for (uint64_t number = 0; number < count; ++number) {
    const std::vector<std::byte> record = RecordOf(number);
    const rocksdb::Slice value(reinterpret_cast<const char*>(record.data()), record.size());
    db->Put(write, name(number), value).PermitUncheckedError();
    if (number >= room) db->Delete(write, name(number - room)).PermitUncheckedError();
  }
  db->Flush(rocksdb::FlushOptions()).PermitUncheckedError();
  PrintWrites("blob files", folder, count, before, Since(began));
  const uint64_t first = count > room ? count - room : 0;
  PrintReads("blob files", folder, [&](std::mt19937_64& random, Buffer&) -> size_t {
    rocksdb::PinnableSlice value;
    const auto status = db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(),
                                name(first + random() % (count - first)), &value);
    const auto bytes = std::as_bytes(std::span(value.data(), value.size()));
    const std::vector<std::byte> record(bytes.begin(), bytes.end());
    return status.ok() && IsIntact(record) ? record.size() : 0;
  });
}

double NumberIn(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const hearth::fs::path folder = argv[1];
  const auto max_bytes = static_cast<int64_t>(hearth::NumberIn(argv[2]) * (1 << 30));
  const double turnovers = argc > 3 ? hearth::NumberIn(argv[3]) : 1;
  const auto count =
      static_cast<uint64_t>(turnovers * static_cast<double>(max_bytes) / hearth::kRecordBytes);
  const std::string_view only = argc > 4 ? argv[4] : "";
  const auto is_wanted = [&](std::string_view name) { return only.empty() || only == name; };
  hearth::DiskStoreOptions options;
  options.max_bytes = max_bytes;
  const auto measure = [&](const char* name, const char* told) {
    if (!is_wanted(name)) return;
    hearth::MeasureStore(told, folder / name, options, count);
    hearth::fs::remove_all(folder / name);
  };
  measure("fifo", "places, FIFO");
  options.direct_reads = true;
  measure("direct", "the same, direct reads");
  options.direct_reads = false;
  options.seal = std::make_shared<const hearth::RecordSeal>("a secret of 16 bytes or more");
  measure("sealed", "the same, encrypted");
  if (!is_wanted("blobs")) return 0;
  hearth::MeasureBlobs(folder / "blobs", max_bytes, count);
  hearth::fs::remove_all(folder / "blobs");
  return 0;
}
