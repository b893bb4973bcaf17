// SPDX-License-Identifier: Apache-2.0
#include "cpu/expert_pager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>

namespace hearth {
namespace {

// Two layers of six experts in a file in memory. Experts are larger than a piece, and begin and end
// inside units and pieces.
class ExpertPagerTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = (uint64_t{5} << 18) + 192;
  static constexpr int kExperts = 6;

  ExpertPagerTest() {
    std::mt19937 random(7);
    file_.resize(64 + 2 * kExperts * kBytes + 4096);
    for (size_t i = 0; i < file_.size(); i += 4) {
      const uint32_t value = static_cast<uint32_t>(random());
      std::memcpy(&file_[i], &value, std::min<size_t>(4, file_.size() - i));
    }
  }
  uint64_t OffsetOf(int layer, int expert) const {
    return 64 + static_cast<uint64_t>(layer * kExperts + expert) * kBytes;
  }
  std::unique_ptr<ExpertPager> Make(int frames) {
    std::vector<std::vector<ExpertPlace>> layers(2);
    for (int layer = 0; layer < 2; ++layer) {
      for (int expert = 0; expert < kExperts; ++expert) {
        ExpertPlace& place = layers[static_cast<size_t>(layer)].emplace_back();
        place.offset = OffsetOf(layer, expert);
        place.num_bytes = kBytes;
        for (uint64_t at = place.offset; at < place.offset + kBytes;) {
          const uint64_t end =
              std::min((at / ExpertPager::kPiece + 1) * ExpertPager::kPiece, place.offset + kBytes);
          place.hashes.push_back(HashOf(std::span(file_).subspan(at, end - at)));
          at = end;
        }
        place.ffn.down.data = reinterpret_cast<const uint8_t*>(uintptr_t{kBytes - 64});
        place.ffn.down_bias = reinterpret_cast<const float*>(uintptr_t{128});
      }
    }
    const uint64_t frame = ExpertPager::FrameBytes(0, kBytes) + ExpertPager::kReadUnit;
    return std::make_unique<ExpertPager>(
        std::move(layers), *LargeBuffer::Make(static_cast<size_t>(frames) * frame),
        [this](uint64_t offset, std::span<std::byte> to, uint64_t needed) {
          EXPECT_EQ(offset % ExpertPager::kReadUnit, 0u);
          EXPECT_EQ(to.size() % ExpertPager::kReadUnit, 0u);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(to.data()) % ExpertPager::kReadUnit, 0u);
          ++reads_;
          if (fails_) return Error(Code::kIo, "the disk is on fire");
          std::memcpy(to.data(), &file_[offset], needed);
          return Status();
        });
  }
  // All experts of a layer in the order they came; their bytes are checked.
  std::vector<int> Use(ExpertPager& pager, int layer, std::vector<int> experts) {
    pager.Begin(layer, experts);
    std::vector<int> came;
    while (true) {
      Result<std::span<const ExpertPager::Loaded>> loaded = pager.Next();
      EXPECT_TRUE(loaded.ok()) << loaded.status().message();
      if (!loaded.ok() || loaded->empty()) return came;
      for (const auto& [expert, ffn] : *loaded) {
        const std::byte* want = &file_[OffsetOf(layer, expert)];
        EXPECT_EQ(std::memcmp(ffn->gate.data, want, kBytes), 0);
        EXPECT_EQ(ffn->down.data, ffn->gate.data + kBytes - 64);
        EXPECT_EQ(reinterpret_cast<const uint8_t*>(ffn->down_bias), ffn->gate.data + 128);
        EXPECT_EQ(ffn->up_bias, nullptr);
        came.push_back(expert);
      }
    }
  }

  std::vector<std::byte> file_;
  std::atomic<bool> fails_{false};
  std::atomic<int> reads_{0};
};

TEST_F(ExpertPagerTest, EveryExpertComesOnceWhateverTheRoom) {
  for (const int frames : {2, 3, 5, 12, 40}) {
    const std::unique_ptr<ExpertPager> pager = Make(frames);
    for (int step = 0; step < 3; ++step) {
      for (const int layer : {0, 1}) {
        EXPECT_THAT(Use(*pager, layer, {0, 1, 2, 3, 4, 5}),
                    ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5));
      }
    }
    const PagingCounts counts = pager->counts();
    EXPECT_EQ(counts.needed, 36u);
    EXPECT_LE(counts.frames, frames);
    EXPECT_LE(counts.resident_bytes, counts.most_bytes);
    // A layer keeps what it has room for from one step to the next.
    EXPECT_EQ(counts.hits, 2u * static_cast<uint64_t>(counts.frames));
  }
}

TEST_F(ExpertPagerTest, TheOneUsedLongestAgoMakesRoom) {
  const std::unique_ptr<ExpertPager> pager = Make(4);  // two for each layer
  Use(*pager, 0, {0});
  Use(*pager, 0, {1});
  Use(*pager, 0, {0});
  Use(*pager, 0, {2});  // in place of 1
  const uint64_t hits = pager->counts().hits;
  Use(*pager, 0, {0});
  EXPECT_EQ(pager->counts().hits, hits + 1);
  Use(*pager, 0, {1});
  EXPECT_EQ(pager->counts().hits, hits + 1);
}

TEST_F(ExpertPagerTest, AFailedReadEndsTheStepAndTheNextOneTriesAgain) {
  const std::unique_ptr<ExpertPager> pager = Make(4);
  Use(*pager, 0, {0});
  fails_ = true;
  pager->Begin(0, std::vector<int>{0, 3, 4});
  Result<std::span<const ExpertPager::Loaded>> first = pager->Next();
  if (first.ok()) first = pager->Next();  // 0 was there
  EXPECT_EQ(first.status().code(), Code::kIo);
  EXPECT_GT(pager->counts().errors, 0u);
  fails_ = false;
  EXPECT_THAT(Use(*pager, 0, {0, 3, 4}), ::testing::UnorderedElementsAre(0, 3, 4));
}

TEST_F(ExpertPagerTest, BytesThatChangedAreAnError) {
  const std::unique_ptr<ExpertPager> pager = Make(2);
  file_[OffsetOf(1, 2) + kBytes - 1] ^= std::byte{1};
  pager->Begin(1, std::vector<int>{2});
  Result<std::span<const ExpertPager::Loaded>> changed = pager->Next();
  EXPECT_EQ(changed.status().code(), Code::kCorrupt);
}

TEST_F(ExpertPagerTest, WhatIsExpectedIsThereWhenItIsNeeded) {
  const std::unique_ptr<ExpertPager> pager = Make(6);
  Use(*pager, 0, {0});
  pager->Expect(1, std::vector<int>{3, 5});
  while (pager->counts().expected < 2) std::this_thread::yield();
  EXPECT_THAT(Use(*pager, 1, {3, 5}), ::testing::UnorderedElementsAre(3, 5));
  const PagingCounts counts = pager->counts();
  EXPECT_EQ(counts.ahead_hits, 2u);
  EXPECT_EQ(counts.bytes_read, 3 * kBytes);
}

TEST_F(ExpertPagerTest, SeveralLayersMayBeExpectedAtOnce) {
  const std::unique_ptr<ExpertPager> pager = Make(8);
  pager->Expect(0, std::vector<int>{1, 2, 4});
  pager->Expect(1, std::vector<int>{3});
  while (pager->HasExpected()) std::this_thread::yield();
  EXPECT_EQ(pager->counts().expected, 4u);
  Use(*pager, 0, {1, 2, 4});
  Use(*pager, 1, {3});
  EXPECT_EQ(pager->counts().ahead_hits, 4u);
}

TEST_F(ExpertPagerTest, WhatWasReadForNothingMakesRoomFirst) {
  const std::unique_ptr<ExpertPager> pager = Make(6);  // three for each layer
  for (const int expert : {0, 1, 4}) Use(*pager, 0, {expert});
  pager->Expect(0, std::vector<int>{2});  // in place of 0
  while (pager->counts().bytes_read < 4 * kBytes) std::this_thread::yield();
  Use(*pager, 0, {4});
  Use(*pager, 0, {3});  // in place of 2, although 1 was used before that was read
  const uint64_t hits = pager->counts().hits;
  Use(*pager, 0, {1});
  EXPECT_EQ(pager->counts().hits, hits + 1);
}

TEST_F(ExpertPagerTest, ALayerThatIsNeverGuessedRightIsSeldomGuessed) {
  const std::unique_ptr<ExpertPager> pager = Make(4);
  int worth = 0;
  for (int i = 0; i < 64; ++i) {
    if (pager->IsWorthExpecting(1)) {
      ++worth;
      pager->Expect(1, std::vector<int>{i % 3});
    }
    Use(*pager, 1, {3 + i % 3});
  }
  EXPECT_LT(worth, 20);
  EXPECT_GT(worth, 5);
}

}  // namespace
}  // namespace hearth
