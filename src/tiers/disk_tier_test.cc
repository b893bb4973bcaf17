// SPDX-License-Identifier: Apache-2.0
#include "tiers/disk_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "testing/temp_dir.h"
#include "testing/tier_records.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KeyOf;
using testing::RecordOf;
using testing::TierAnswers;

class DiskTierTest : public ::testing::Test {
 protected:
  DiskTierTest() {
    options_.store.max_bytes = kLeastDiskBytes;
    options_.warn = [this](const std::string& line) {
      const MutexLock lock(mu_);
      lines_.push_back(line);
    };
  }

  void Open() {
    tier_.reset();
    Result<std::unique_ptr<DiskTier>> tier = DiskTier::Open(folder_.string(), options_);
    ASSERT_TRUE(tier.ok()) << tier.status().message();
    tier_ = std::move(*tier);
    tier_->Connect(&answers_);
  }
  TierOutcome Store(uint64_t number) {
    const TransferId id = next_++;
    tier_->Store(id, KeyOf(number), 0, RecordOf(number));
    const auto done = answers_.Wait(id);
    EXPECT_TRUE(done.has_value());
    return done ? done->outcome : TierOutcome::kFailed;
  }
  TierOutcome Fetch(uint64_t number) {
    const TransferId id = next_++;
    tier_->Fetch(id, KeyOf(number), 0);
    const auto done = answers_.Wait(id);
    EXPECT_TRUE(done.has_value());
    if (!done) return TierOutcome::kFailed;
    if (done->outcome == TierOutcome::kDone) {
      EXPECT_EQ(done->record, RecordOf(number));
    }
    return done->outcome;
  }
  std::vector<std::string> lines() {
    const MutexLock lock(mu_);
    return lines_;
  }

  const testing::TempDir dir_;
  const fs::path folder_ = dir_.Path("blocks");
  DiskTierOptions options_;
  TierAnswers answers_;
  Mutex mu_;
  std::vector<std::string> lines_ HEARTH_GUARDED_BY(mu_);
  std::unique_ptr<DiskTier> tier_;
  TransferId next_ = 1;
};

TEST_F(DiskTierTest, WhatIsStoredIsFetchedAlsoAfterAnEnd) {
  Open();
  EXPECT_EQ(tier_->name(), "disk");
  EXPECT_EQ(Fetch(1), TierOutcome::kMissing);
  for (uint64_t number = 0; number < 20; ++number) {
    EXPECT_FALSE(tier_->MayHave(KeyOf(number)));
    EXPECT_EQ(Store(number), TierOutcome::kDone);
    EXPECT_TRUE(tier_->MayHave(KeyOf(number)));
  }
  Open();
  for (uint64_t number = 0; number < 20; ++number) EXPECT_EQ(Fetch(number), TierOutcome::kDone);
  const TierStats stats = tier_->stats();
  EXPECT_EQ(stats.num_hits, 20u);
  EXPECT_EQ(stats.num_misses, 0u);
  EXPECT_EQ(stats.num_records, 20);
  EXPECT_GT(stats.bytes_read, 20 * 1024);
  EXPECT_GT(stats.used_bytes, stats.bytes_read);
  EXPECT_EQ(stats.capacity_bytes, kLeastDiskBytes);
  EXPECT_TRUE(lines().empty());
}

TEST_F(DiskTierTest, ManyFetchesAreEachAnsweredOnce) {
  options_.num_readers = 8;
  Open();
  for (uint64_t number = 0; number < 50; ++number) Store(number);
  const size_t before = answers_.num_answers();
  const TransferId first = next_;
  for (int i = 0; i < 500; ++i) tier_->Fetch(next_++, KeyOf(static_cast<uint64_t>(i) % 60), 0);
  for (int i = 0; i < 500; ++i) {
    const auto done = answers_.Wait(first + static_cast<TransferId>(i));
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->outcome, i % 60 < 50 ? TierOutcome::kDone : TierOutcome::kMissing);
    if (i % 60 < 50) {
      EXPECT_EQ(done->record, RecordOf(static_cast<uint64_t>(i) % 60));
    }
  }
  EXPECT_EQ(answers_.num_answers() - before, 500u);
}

TEST_F(DiskTierTest, AFullLineIsSaidAtOnce) {
  options_.max_waiting_bytes = 10;
  options_.max_waiting_fetches = 0;
  Open();
  EXPECT_EQ(Store(1), TierOutcome::kFull);
  EXPECT_EQ(tier_->stats().num_declined, 1u);
  EXPECT_EQ(Fetch(1), TierOutcome::kMissing);
  options_.max_waiting_bytes = 1 << 20;
  Open();
  EXPECT_EQ(Store(1), TierOutcome::kDone);
  EXPECT_EQ(Fetch(1), TierOutcome::kFailed) << "it is there, but nobody may wait";
}

TEST_F(DiskTierTest, TheBudgetHoldsUntilSomethingComesAgain) {
  options_.writes = {.bytes_per_s = 0, .burst_bytes = 400'000};
  Open();
  int num_stored = 0;
  uint64_t number = 0;
  for (; number < 40; ++number) num_stored += Store(number) == TierOutcome::kDone;
  EXPECT_GT(num_stored, 3);
  EXPECT_LT(num_stored, 20);
  EXPECT_EQ(Store(39), TierOutcome::kDone) << "the second time";
  EXPECT_EQ(tier_->stats().num_declined, 40u - static_cast<unsigned>(num_stored));
}

TEST_F(DiskTierTest, NobodyIsCalledAfterTheConnectionEnded) {
  Open();
  for (uint64_t number = 0; number < 50; ++number) Store(number);
  for (int round = 0; round < 20; ++round) {
    for (uint64_t number = 0; number < 50; ++number) tier_->Fetch(next_++, KeyOf(number), 0);
    tier_->Connect(nullptr);
    const size_t at_end = answers_.num_answers();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(answers_.num_answers(), at_end);
    tier_->Connect(&answers_);
  }
}

TEST_F(DiskTierTest, WhatIsCancelledIsNotRead) {
  options_.num_readers = 1;
  Open();
  Store(1);
  const uint64_t before = tier_->stats().num_hits;
  for (int i = 0; i < 1000; ++i) tier_->Fetch(next_ + static_cast<TransferId>(i), KeyOf(1), 0);
  for (int i = 0; i < 1000; ++i) tier_->Cancel(next_ + static_cast<TransferId>(i));
  next_ += 1000;
  EXPECT_EQ(Fetch(1), TierOutcome::kDone);
  EXPECT_LT(tier_->stats().num_hits - before, 900u);
}

TEST_F(DiskTierTest, OldRecordsThatAreWantedBecomeYoung) {
  Open();
  Store(0);
  uint64_t number = 1;
  for (int round = 0; round < 15; ++round) {
    for (int i = 0; i < 60; ++i) Store(number++);  // 2 MB
    EXPECT_EQ(Fetch(0), TierOutcome::kDone) << "round " << round;
  }
  EXPECT_FALSE(tier_->MayHave(KeyOf(1)));
  EXPECT_GT(tier_->stats().num_stored, number) << "some were written again";
}

TEST_F(DiskTierTest, ADamagedStoreIsReplacedWithALine) {
  Open();
  Store(1);
  tier_.reset();
  for (const auto& each : fs::directory_iterator(folder_)) {
    if (each.path().filename().string().starts_with("MANIFEST")) fs::resize_file(each.path(), 10);
  }
  Open();
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("was damaged")));
  EXPECT_EQ(Fetch(1), TierOutcome::kMissing);
  EXPECT_EQ(Store(1), TierOutcome::kDone);
  EXPECT_EQ(Fetch(1), TierOutcome::kDone);
}

TEST_F(DiskTierTest, ADamagedRecordIsAMissAndCounted) {
  Open();
  for (uint64_t number : {1, 2}) {
    const TransferId id = next_++;
    tier_->Store(id, KeyOf(number), 0, RecordOf(number + 10));
    ASSERT_TRUE(answers_.Wait(id).has_value());
    EXPECT_EQ(Fetch(number), TierOutcome::kMissing);
    EXPECT_FALSE(tier_->MayHave(KeyOf(number)));
  }
  EXPECT_EQ(tier_->stats().num_corrupt, 2u);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("damaged record"))) << "one line for all of them";
}

// The directory goes away below its feet: files that are open stay readable, new ones cannot be.
TEST_F(DiskTierTest, ADiskThatTakesNothingMoreIsLeftAloneWithALine) {
  options_.flush_after_us = 1'000;
  options_.retry_after_us = 50'000;
  Open();
  Store(1);
  const fs::path away = folder_.string() + "-away";
  fs::rename(folder_, away);
  std::ofstream(folder_) << "in the way";
  bool was_refused = false;
  for (uint64_t number = 2; number < 2000 && !was_refused; ++number) {
    was_refused = Store(number) == TierOutcome::kFailed;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(was_refused);
  EXPECT_FALSE(tier_->stats().is_writing);
  EXPECT_GT(tier_->stats().num_failed, 0u);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("writing fails")));
  EXPECT_EQ(Fetch(1), TierOutcome::kDone) << "what was there before can be read";
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(Store(3000), TierOutcome::kFailed) << "tried again";
  EXPECT_EQ(lines().size(), 1u) << "and nothing new to say";
}

}  // namespace
}  // namespace hearth
