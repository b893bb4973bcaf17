// SPDX-License-Identifier: Apache-2.0
#include "tiers/cache_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_dir.h"
#include "testing/tier_records.h"
#include "tiers/disk_store.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CacheDirectoryTest : public ::testing::Test {
 protected:
  CacheDirectory Open() {
    Result<CacheDirectory> cache = CacheDirectory::Open(path_);
    EXPECT_TRUE(cache.ok()) << cache.status().message();
    return *std::move(cache);
  }
  const testing::TempDir dir_;
  const fs::path folder_ = dir_.path();
  const std::string path_ = dir_.Path("cache");
};

TEST_F(CacheDirectoryTest, IsMadeWithItsMarkAndFoundAgain) {
  EXPECT_EQ(CacheDirectory::Find(path_).status().code(), Code::kNotFound);
  EXPECT_EQ(Open().path(), path_);
  EXPECT_TRUE(fs::exists(path_ + "/hearth-cache-1"));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(CacheDirectory::Find(path_).ok());
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(CacheDirectory::Find((folder_ / "empty").string()).status().code(), Code::kNotFound);
  EXPECT_TRUE(CacheDirectory::Open((folder_ / "empty").string()).ok());
}

TEST_F(CacheDirectoryTest, LeavesOthersDirectoriesAlone) {
  fs::create_directories(path_);
  std::ofstream(path_ + "/thesis.txt") << "years of work";
  const Result<CacheDirectory> cache = CacheDirectory::Open(path_);
  EXPECT_EQ(cache.status().code(), Code::kInvalid);
  EXPECT_THAT(cache.status().message(), HasSubstr("not a cache of Hearth"));
  fs::remove(path_ + "/thesis.txt");
  std::ofstream(path_ + "/hearth-cache-2") << "";
  EXPECT_EQ(CacheDirectory::Open(path_).status().code(), Code::kUnsupported);
  std::ofstream(folder_ / "file") << "";
  EXPECT_EQ(CacheDirectory::Open((folder_ / "file").string()).status().code(), Code::kIo);
}

TEST_F(CacheDirectoryTest, TheSecretIsMadeOnceAndItsOwnersAlone) {
  Result<std::string> first = Open().Secret();
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->size(), 64u);
  Result<std::string> second = Open().Secret();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(fs::status(path_ + "/key").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  fs::remove(path_ + "/key");
  Result<std::string> third = Open().Secret();
  ASSERT_TRUE(third.ok());
  EXPECT_NE(*first, *third);
  for (const char* text : {"", "abc\n"}) {
    std::ofstream(path_ + "/key") << text;
    EXPECT_EQ(Open().Secret().status().code(), Code::kCorrupt);
  }
}

TEST_F(CacheDirectoryTest, KnowsItsStores) {
  const CacheDirectory cache = Open();
  EXPECT_TRUE(cache.Stores().empty());
  Result<std::string> first = cache.UseStore(0xabc, "one.gguf");
  Result<std::string> second = cache.UseStore(0xdef, "two.gguf");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  const auto opened = DiskStore::Open(*first, {.max_bytes = kLeastDiskBytes});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  fs::last_write_time(path_ + "/models/0000000000000abc/about",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::create_directories(path_ + "/models/something else");
  const std::vector<CacheDirectory::Store> stores = cache.Stores();
  ASSERT_EQ(stores.size(), 2u);
  EXPECT_EQ(stores[0].about, "two.gguf");
  EXPECT_EQ(stores[1].about, "one.gguf");
  EXPECT_EQ(stores[1].blocks, *first);
  EXPECT_GT(stores[1].num_bytes, 0);
  EXPECT_NEAR(static_cast<double>(stores[0].used_at_s - stores[1].used_at_s), 3600, 60);
  EXPECT_EQ(cache.Remove(stores[1]).code(), Code::kExhausted) << "it is open";
  EXPECT_TRUE(cache.Remove(stores[0]).ok());
  EXPECT_EQ(cache.Stores().size(), 1u);
}

TEST_F(CacheDirectoryTest, ItsAgeIsNoDate) {
  constexpr int64_t kDay = 24 * 3600, kYear = 365 * kDay;
  const CacheDirectory cache = Open();
  ClockReading now{1'800'000'000, 5000, "boot"};
  const ClockFn clocks = [&now] { return now; };
  ASSERT_TRUE(cache.UseStore(0xabc, "one.gguf", clocks).ok());
  for (const int64_t jump : {3 * kDay, 12 * kYear, -24 * kYear}) {
    now.wall_s += jump;
    now.boot_s += 100;
    const int64_t before = cache.Age(clocks);
    EXPECT_EQ(before - cache.Stores()[0].used_at_s, 100) << jump;
    ASSERT_TRUE(cache.UseStore(0xabc, "one.gguf", clocks).ok());
    EXPECT_EQ(cache.Stores()[0].used_at_s, before) << jump;
  }
}

TEST_F(CacheDirectoryTest, RemembersDigests) {
  const CacheDirectory cache = Open();
  EXPECT_FALSE(cache.DigestOf("aa").has_value());
  ASSERT_TRUE(cache.RememberDigest("aa", 17).ok());
  ASSERT_TRUE(cache.RememberDigest("bb", 0xfedcba9876543210u).ok());
  EXPECT_EQ(cache.DigestOf("aa"), 17u);
  EXPECT_EQ(Open().DigestOf("bb"), 0xfedcba9876543210u);
  EXPECT_FALSE(cache.DigestOf("a").has_value());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cache.RememberDigest("x" + std::to_string(i), static_cast<uint64_t>(i)).ok());
  }
  EXPECT_FALSE(cache.DigestOf("aa").has_value()) << "there is an end to it";
  EXPECT_EQ(cache.DigestOf("x99"), 99u);
  std::ofstream(path_ + "/digests") << "x99 what is this\n";
  EXPECT_FALSE(cache.DigestOf("x99").has_value());
}

}  // namespace
}  // namespace hearth
