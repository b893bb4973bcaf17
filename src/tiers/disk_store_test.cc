// SPDX-License-Identifier: Apache-2.0
#include "tiers/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "testing/temp_dir.h"
#include "testing/tier_records.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::KeyOf;
using testing::RecordOf;

class DiskStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<DiskStore> Open() {
    Result<std::unique_ptr<DiskStore>> store = DiskStore::Open(folder_.string(), options_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return store.ok() ? std::move(*store) : nullptr;
  }
  static void Put(DiskStore& store, uint64_t number, size_t num_bytes = 0) {
    const Status status = store.Put(KeyOf(number), 0, RecordOf(number, num_bytes));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  static bool IsThere(DiskStore& store, uint64_t number, size_t num_bytes = 0) {
    Result<TierBytes> got = store.Get(KeyOf(number));
    EXPECT_EQ(store.Has(KeyOf(number)), got.ok());
    if (got.ok()) {
      EXPECT_EQ(*got, RecordOf(number, num_bytes)) << number;
    }
    return got.ok();
  }
  std::vector<fs::path> Tables() const {
    std::vector<fs::path> tables;
    for (const auto& each : fs::directory_iterator(folder_)) {
      if (each.path().extension() == ".sst") tables.push_back(each.path());
    }
    return tables;
  }

  int64_t BytesOfTables() const {
    int64_t sum = 0;
    for (const fs::path& table : Tables()) {
      std::error_code gone;  // dropped meanwhile
      const auto size = fs::file_size(table, gone);
      if (!gone) sum += static_cast<int64_t>(size);
    }
    return sum;
  }

  const testing::TempDir dir_;
  const fs::path folder_ = dir_.Path("blocks");
  DiskStoreOptions options_{.max_bytes = kLeastDiskBytes};
};

TEST_F(DiskStoreTest, KeepsWhatItIsGivenAlsoOverAnEnd) {
  for (int run = 0; run < 3; ++run) {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    for (uint64_t number = 0; number < 100; ++number) {
      EXPECT_EQ(IsThere(*store, number), number < 30u * static_cast<unsigned>(run)) << number;
    }
    for (uint64_t i = 0; i < 30; ++i) Put(*store, 30u * static_cast<unsigned>(run) + i);
    for (uint64_t i = 0; i < 30; ++i) {
      EXPECT_TRUE(IsThere(*store, 30u * static_cast<unsigned>(run) + i));
    }
    EXPECT_EQ(store->num_records(), 30 * (run + 1));
  }
}

// On a full disk Debian's library ends the process when it writes to its log a second time.
TEST_F(DiskStoreTest, RocksDbWritesNoLogOfItsOwn) {
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  Put(*store, 1);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_FALSE(fs::exists(folder_ / "LOG"));
  EXPECT_FALSE(Tables().empty()) << "this is the folder";
}

TEST_F(DiskStoreTest, AnUnknownKeyIsNotFound) {
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->Get(KeyOf(5)).status().code(), Code::kNotFound);
  TierKey other = KeyOf(1);
  Put(*store, 1);
  other.group = 7;
  EXPECT_EQ(store->Get(other).status().code(), Code::kNotFound) << "the group is part of the key";
}

TEST_F(DiskStoreTest, TheOldestGoAndTheBoundHolds) {
  constexpr size_t kBytes = 100'000;
  constexpr uint64_t kCount = 600;  // 60 MB for 16 MiB
  {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    for (uint64_t number = 0; number < kCount; ++number) Put(*store, number, kBytes);
    ASSERT_TRUE(store->Flush().ok());
    EXPECT_LE(store->used_bytes(), options_.max_bytes);
  }
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_LE(store->used_bytes(), options_.max_bytes);
  EXPECT_LE(BytesOfTables(), options_.max_bytes);
  // RocksDB may drop its oldest file at any moment, also now. So the newest are asked for first:
  // then one that has gone means that all older ones have.
  uint64_t first = kCount;
  while (first > 0 && IsThere(*store, first - 1, kBytes)) --first;
  const uint64_t num_there = kCount - first;
  for (uint64_t number = 0; number < first; ++number) {
    EXPECT_FALSE(IsThere(*store, number, kBytes)) << number << ", older than " << first;
  }
  EXPECT_GT(first, kCount / 2) << "of 60 MB";
  EXPECT_GE(num_there * kBytes, static_cast<uint64_t>(options_.max_bytes) / 4)
      << "files of merged ones are large, but not so large";
  EXPECT_EQ(store->num_records(), static_cast<int64_t>(num_there));
  EXPECT_EQ(store->Keys().front(), KeyOf(first));
}

// However late RocksDB's threads are, nothing is put beyond the bound.
TEST_F(DiskStoreTest, TheBoundHoldsWhileNothingIsDropped) {
  struct Blocked {
    std::promise<void> promise;
    std::shared_future<void> over = promise.get_future().share();
  } blocked;
  rocksdb::Env* env = rocksdb::Env::Default();
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  const int num_threads = env->GetBackgroundThreads(rocksdb::Env::LOW);
  std::atomic<int> num_left = num_threads;
  struct Job {
    Blocked* blocked;
    std::atomic<int>* num_left;
  } job{&blocked, &num_left};
  for (int i = 0; i < num_threads; ++i) {
    env->Schedule(
        [](void* of) {
          const Job& each = *static_cast<Job*>(of);
          each.blocked->over.wait();
          --*each.num_left;
        },
        &job, rocksdb::Env::LOW);
  }
  std::atomic<uint64_t> num_put = 0;
  std::thread writer([&] {
    for (; num_put < 600; ++num_put) Put(*store, num_put, 100'000);
  });
  // Until it waits, or, if it does not, has put all.
  for (uint64_t before = ~uint64_t{0}; num_put < 600 && num_put != before;) {
    before = num_put;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  EXPECT_LE(BytesOfTables(), options_.max_bytes);
  blocked.promise.set_value();
  writer.join();
  while (num_left > 0) std::this_thread::yield();
  EXPECT_LE(BytesOfTables(), options_.max_bytes);
  EXPECT_TRUE(IsThere(*store, 599, 100'000));
}

TEST_F(DiskStoreTest, WhatIsPutAgainIsYoungAgain) {
  constexpr size_t kBytes = 100'000;
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  Put(*store, 0, kBytes);
  EXPECT_FALSE(store->IsOld(KeyOf(0)));
  for (uint64_t number = 1; number < 300; ++number) {
    Put(*store, number, kBytes);
    if (store->IsOld(KeyOf(0))) Put(*store, 0, kBytes);
  }
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_TRUE(IsThere(*store, 0, kBytes));
  EXPECT_FALSE(store->Has(KeyOf(1)));
}

TEST_F(DiskStoreTest, AFloodDoesNotPushOutWhatOthersStored) {
  constexpr size_t kBytes = 100'000;
  constexpr uint32_t kQuiet = 7, kGreedy = 8;
  constexpr uint64_t kRecords = 20;
  const auto flood = [&](DiskStore& store, uint64_t first, int count) {
    for (uint64_t i = first; i < first + static_cast<uint64_t>(count); ++i) {
      ASSERT_TRUE(store.Put(KeyOf(i), kGreedy, RecordOf(i, kBytes)).ok());
    }
  };
  const auto left = [&](DiskStore& store) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < kRecords; ++i) count += store.Has(KeyOf(i));
    return count;
  };
  {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    for (uint64_t i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(store->Put(KeyOf(i), kQuiet, RecordOf(i, kBytes)).ok());
    }
    flood(*store, 1000, 90);
  }
  const auto store = Open();  // whose they are is known after a restart as well
  ASSERT_NE(store, nullptr);
  EXPECT_GT(store->bytes_of(kQuiet), static_cast<int64_t>(kRecords * kBytes));
  flood(*store, 2000, 90);
  EXPECT_EQ(left(*store), kRecords) << "twice as much as there is room for was stored since";
  for (uint64_t i = 0; i < kRecords; ++i) EXPECT_TRUE(IsThere(*store, i, kBytes)) << i;
  EXPECT_FALSE(store->Has(KeyOf(1000))) << "its own went";
  EXPECT_GT(store->spared_bytes(), 0);
  EXPECT_LT(store->spared_bytes(), static_cast<int64_t>(180 * kBytes)) << "no more than was new";
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_LE(BytesOfTables(), options_.max_bytes);
  flood(*store, 3000, 400);
  EXPECT_EQ(left(*store), 0u) << "what nobody reads goes in the end";
}

TEST_F(DiskStoreTest, AmongTenantsWithinTheirSharesTheOldestGoes) {
  constexpr size_t kBytes = 100'000;
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(store->Put(KeyOf(i), static_cast<uint32_t>(i % 3), RecordOf(i, kBytes)).ok());
  }
  EXPECT_EQ(store->spared_bytes(), 0);
  EXPECT_FALSE(store->Has(KeyOf(0)));
}

TEST_F(DiskStoreTest, HoldsNoMoreRecordsThanItMay) {
  options_.max_records = 50;
  {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    for (uint64_t number = 0; number < 200; ++number) Put(*store, number, 200);
    ASSERT_TRUE(store->Flush().ok());
    EXPECT_EQ(store->num_records(), 50);
    EXPECT_TRUE(IsThere(*store, 199, 200));
    EXPECT_FALSE(store->Has(KeyOf(149)));
  }
  EXPECT_EQ(Open()->num_records(), 50);
}

TEST_F(DiskStoreTest, OneProcessHasItAtATime) {
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  const Result<std::unique_ptr<DiskStore>> second = DiskStore::Open(folder_.string(), options_);
  EXPECT_EQ(second.status().code(), Code::kExhausted);
  EXPECT_THAT(second.status().message(), HasSubstr("another process"));
  EXPECT_EQ(DiskStore::Discard(folder_.string()).code(), Code::kExhausted);
  Put(*store, 1);
  EXPECT_TRUE(IsThere(*store, 1)) << "the first goes on";
}

TEST_F(DiskStoreTest, AFlippedBitIsAMissAndIsForgotten) {
  {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    for (uint64_t number = 0; number < 4; ++number) Put(*store, number, 50'000);
  }
  std::vector<fs::path> tables = Tables();
  const fs::path largest = *std::ranges::max_element(
      tables, {}, [](const fs::path& path) { return fs::file_size(path); });
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(75'000);
  const int old = file.get();
  file.seekp(75'000);
  file.put(static_cast<char>(old ^ 1));
  file.close();
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  int num_wrong = 0;
  for (uint64_t number = 0; number < 4; ++number) {
    Result<TierBytes> got = store->Get(KeyOf(number));
    if (got.ok()) {
      EXPECT_EQ(*got, RecordOf(number, 50'000));
      continue;
    }
    ++num_wrong;
    EXPECT_EQ(got.status().code(), Code::kCorrupt);
    EXPECT_FALSE(store->Has(KeyOf(number)));
    EXPECT_EQ(store->Get(KeyOf(number)).status().code(), Code::kNotFound);
  }
  EXPECT_EQ(num_wrong, 1);
}

TEST_F(DiskStoreTest, ARecordOutlivesItsStore) {
  std::vector<TierBytes> records;
  {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    for (uint64_t number = 0; number < 20; ++number) Put(*store, number, 50'000);
    for (uint64_t number = 0; number < 20; ++number) {  // out of memory first, then out of a file
      records.push_back(*store->Get(KeyOf(number)));
      if (number == 9) {
        ASSERT_TRUE(store->Flush().ok());
      }
    }
    records.push_back(*store->Get(KeyOf(19)));  // one that is in use already
  }
  for (uint64_t number = 0; number < 20; ++number) {
    EXPECT_EQ(records[number], RecordOf(number, 50'000)) << number;
  }
  EXPECT_EQ(records[20], records[19]);
}

TEST_F(DiskStoreTest, ARecordOfAnotherBlockIsNotBelieved) {
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  ASSERT_TRUE(store->Put(KeyOf(1), 0, RecordOf(2)).ok());
  EXPECT_EQ(store->Get(KeyOf(1)).status().code(), Code::kCorrupt);
  EXPECT_FALSE(store->Has(KeyOf(1)));
  std::vector<std::byte> damaged = RecordOf(3);
  damaged.back() ^= std::byte{1};
  ASSERT_TRUE(store->Put(KeyOf(3), 0, damaged).ok());
  EXPECT_EQ(store->Get(KeyOf(3)).status().code(), Code::kCorrupt);
  EXPECT_FALSE(store->Has(KeyOf(3)));
}

TEST_F(DiskStoreTest, AMissingFileIsToldAndDiscarded) {
  {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    Put(*store, 1);
  }
  for (const fs::path& table : Tables()) fs::remove(table);
  EXPECT_EQ(DiskStore::Open(folder_.string(), options_).status().code(), Code::kCorrupt);
  EXPECT_TRUE(DiskStore::Discard(folder_.string()).ok());
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_EQ(Open()->num_records(), 0);
}

TEST_F(DiskStoreTest, APlaceThatCannotBeIsAnError) {
  std::ofstream(folder_) << "a file";
  EXPECT_EQ(DiskStore::Open((folder_ / "below").string(), options_).status().code(), Code::kIo);
  options_.max_bytes = kLeastDiskBytes - 1;
  EXPECT_EQ(DiskStore::Open(folder_.string() + "-2", options_).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hearth
