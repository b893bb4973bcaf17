// SPDX-License-Identifier: Apache-2.0
#include "app/open_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/open_model.h"
#include "server/access/secrets.h"
#include "testing/data.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const KvLayout kLayout{.groups = {{0, 1024, 10}}};

class OpenTierTest : public ::testing::Test {
 protected:
  OpenTierTest() {
    flags_.directory = dir_.path() + "/cache";
    flags_.disk_bytes = 64 << 20;
    flags_.model_path = Write("model.gguf", "weights");
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(fs::path(dir_.path()) / name) << text;
    return dir_.path() + "/" + name;
  }
  // 0: there is no tier.
  uint64_t SeedOf(const CacheFlags& flags, const KvLayout& layout = kLayout) {
    ::testing::internal::CaptureStderr();
    const OpenedTier opened = OpenTier(flags, model_, layout);
    said_ = ::testing::internal::GetCapturedStderr();
    return opened.tier == nullptr ? 0 : opened.key_seed;
  }
  testing::TempDir dir_;
  CacheFlags flags_;
  Model model_;
  std::string said_;
};

TEST_F(OpenTierTest, TheSameContentHasTheSameSeedAfterARestart) {
  const uint64_t seed = SeedOf(flags_);
  EXPECT_NE(seed, 0u) << said_;
  EXPECT_THAT(said_, HasSubstr("disk cache: "));
  EXPECT_EQ(SeedOf(flags_), seed);
  CacheFlags copied = flags_;
  copied.model_path = Write("copy.gguf", "weights");
  EXPECT_EQ(SeedOf(copied), seed) << "the bytes count, not the name";
  KvLayout other = kLayout;
  other.groups[0].block_bytes *= 2;
  EXPECT_NE(SeedOf(flags_, other), seed);
  CacheFlags fast = flags_;
  fast.numerics = Numerics::kFast;
  EXPECT_NE(SeedOf(fast), seed) << "other bits";
  CacheFlags elsewhere = flags_;
  elsewhere.directory += "-2";
  EXPECT_NE(SeedOf(elsewhere), seed) << "another secret";
  Write("model.gguf", "weightz");
  const uint64_t changed = SeedOf(flags_);
  EXPECT_NE(changed, 0u);
  EXPECT_NE(changed, seed) << "another model under the same name";
}

TEST_F(OpenTierTest, WithoutADirectoryThereIsNone) {
  flags_.directory.clear();
  EXPECT_EQ(SeedOf(flags_), 0u);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(*LastingRoot(flags_), "");
  EXPECT_TRUE(CacheFolders(flags_).empty());
}

TEST_F(OpenTierTest, TheDirectoryIsMadeBeforeItIsAllowed) {
  EXPECT_EQ(CacheFolders(flags_), std::vector<std::string>{flags_.directory});
  EXPECT_TRUE(fs::exists(flags_.directory));
  flags_.directory = Write("file", "") + "/below";
  EXPECT_TRUE(CacheFolders(flags_).empty());
}

TEST_F(OpenTierTest, WhatCannotBeUsedIsALineAndNoError) {
  CacheFlags flags = flags_;
  flags.directory = Write("file", "") + "/below";
  EXPECT_EQ(SeedOf(flags), 0u);
  EXPECT_THAT(said_, HasSubstr("serving goes on without it"));
  EXPECT_FALSE(LastingRoot(flags).ok());
  flags = flags_;
  flags.disk_bytes = 1000;
  EXPECT_EQ(SeedOf(flags), 0u);
  EXPECT_THAT(said_, HasSubstr("too few"));
  flags = flags_;
  flags.model_path += "-none";
  EXPECT_EQ(SeedOf(flags), 0u);
  const OpenedTier first = OpenTier(flags_, model_, kLayout);
  ASSERT_NE(first.tier, nullptr);
  EXPECT_EQ(SeedOf(flags_), 0u);
  EXPECT_THAT(said_, HasSubstr("another process has it open"));
}

TEST_F(OpenTierTest, OneThatCannotBeUsedLeavesTheOther) {
  flags_.key_path = Write("secret", "sixteen bytes, or more\n");
  flags_.servers = "redis://127.0.0.1:1";
  ASSERT_TRUE(CheckCacheFlags(flags_).ok());
  const uint64_t both = SeedOf(flags_);
  EXPECT_NE(both, 0u);
  flags_.directory = Write("file", "") + "/below";
  EXPECT_EQ(SeedOf(flags_), both) << "what others stored is found all the same";
  EXPECT_THAT(said_, HasSubstr("no disk cache"));
  EXPECT_THAT(said_, ::testing::Not(HasSubstr("no shared cache")));
  EXPECT_NE(*LastingRoot(flags_), "");
}

TEST_F(OpenTierTest, TheKeyIsReadOnce) {
  flags_.key_path = Write("secret", "sixteen bytes, or more\n");
  ASSERT_TRUE(CheckCacheFlags(flags_).ok());
  EXPECT_EQ(flags_.key, "sixteen bytes, or more");
  const std::string root = *LastingRoot(flags_);
  const uint64_t seed = SeedOf(flags_);
  fs::remove(flags_.key_path);
  EXPECT_EQ(root, "sixteen bytes, or more");
  EXPECT_EQ(*LastingRoot(flags_), root);
  EXPECT_EQ(SeedOf(flags_), seed);
  EXPECT_TRUE(CacheReads(flags_).empty());
  EXPECT_FALSE(CheckCacheFlags(flags_).ok());
}

TEST_F(OpenTierTest, TheRootStays) {
  ASSERT_NE(SeedOf(flags_), 0u);
  const std::string root = *LastingRoot(flags_);
  EXPECT_NE(root, "");
  EXPECT_EQ(*LastingRoot(flags_), root);
  fs::remove(flags_.directory + "/key");
  EXPECT_NE(*LastingRoot(flags_), root);
}

// What encrypts blocks is not what names them, and neither is the root: the one tells nothing of
// the others.
TEST_F(OpenTierTest, BlocksAreNotEncryptedWithTheKeyItself) {
  const TierKey key{{1, 2}, 3};
  const std::vector<std::byte> record(100);
  const auto sealed = BlockSealOf("sixteen bytes, or more")->Seal(key, record);
  EXPECT_TRUE(BlockSealOf("sixteen bytes, or more")->Open(key, sealed));
  EXPECT_FALSE(RecordSeal("sixteen bytes, or more").Open(key, sealed));
  const Secrets secrets("sixteen bytes, or more");
  for (const Purpose other : {Purpose::kBlockNames, Purpose::kJournalRecords}) {
    EXPECT_FALSE(RecordSeal(secrets.TextFor(other)).Open(key, sealed));
  }
}

TEST_F(OpenTierTest, ModelsThatNobodyServesAreForgotten) {
  ASSERT_NE(SeedOf(flags_), 0u);
  CacheFlags other = flags_;
  other.model_path = Write("other.gguf", "something else");
  for (const auto& each : fs::directory_iterator(flags_.directory + "/models")) {
    fs::last_write_time(each.path() / "about",
                        fs::file_time_type::clock::now() - std::chrono::hours(24 * 31));
  }
  ASSERT_NE(SeedOf(other), 0u);
  EXPECT_THAT(said_, HasSubstr("removed the blocks of \"model.gguf\""));
  const fs::directory_iterator left(flags_.directory + "/models");
  EXPECT_EQ(std::distance(begin(left), end(left)), 1);
}

TEST(DefaultDiskBytes, IsAModestShare) {
  EXPECT_EQ(DefaultDiskBytes(int64_t{100} << 30), int64_t{10} << 30);
  EXPECT_EQ(DefaultDiskBytes(int64_t{4000} << 30), int64_t{16} << 30);
}

}  // namespace
}  // namespace hearth
