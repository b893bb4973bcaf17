// SPDX-License-Identifier: Apache-2.0
#include "kv/block_record.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hearth {
namespace {

const TierKey kKey{{11, 22}, 1};
const std::vector<Token> kTokens = {5, 6, 7};

std::vector<std::byte> Finished(size_t num_bytes) {
  std::vector<std::byte> record = MakeRecord(kKey, kTokens, num_bytes);
  for (size_t i = 0; i < num_bytes; ++i) {
    PayloadOf(record, num_bytes)[i] = static_cast<std::byte>(i * 7);
  }
  FinishRecord(record);
  return record;
}

TEST(BlockRecord, GivesBackWhatWasStored) {
  for (const size_t size : {0, 1, 31, 32, 33, 4096}) {
    const std::vector<std::byte> record = Finished(size);
    ASSERT_TRUE(IsIntact(record)) << size;
    const auto bytes = ReadRecord(record, kKey, kTokens, size);
    ASSERT_TRUE(bytes.has_value());
    ASSERT_EQ(bytes->size(), size);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ((*bytes)[i], static_cast<std::byte>(i * 7));
  }
}

TEST(BlockRecord, EveryFlippedBitIsNoticed) {
  std::vector<std::byte> record = Finished(77);
  for (size_t bit = 0; bit < 8 * record.size(); ++bit) {
    record[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(IsIntact(record)) << "bit " << bit;
    record[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  EXPECT_TRUE(IsIntact(record));
}

TEST(BlockRecord, EveryOtherLengthIsNoticed) {
  const std::vector<std::byte> record = Finished(77);
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(IsIntact(std::span(record).first(size))) << size;
  }
  std::vector<std::byte> longer = record;
  longer.push_back({});
  EXPECT_FALSE(IsIntact(longer));
}

TEST(BlockRecord, AnotherBlocksRecordIsNotTaken) {
  const std::vector<std::byte> record = Finished(16);
  EXPECT_TRUE(ReadRecord(record, kKey, kTokens, 16).has_value());
  EXPECT_FALSE(ReadRecord(record, {{11, 23}, 1}, kTokens, 16).has_value());
  EXPECT_FALSE(ReadRecord(record, {{11, 22}, 0}, kTokens, 16).has_value());
  EXPECT_FALSE(ReadRecord(record, kKey, std::vector<Token>{5, 6, 8}, 16).has_value());
  EXPECT_FALSE(ReadRecord(record, kKey, std::vector<Token>{5, 6}, 16).has_value());
  EXPECT_FALSE(ReadRecord(record, kKey, kTokens, 15).has_value());
  EXPECT_TRUE(IsRecordOf(record, kKey));
  EXPECT_FALSE(IsRecordOf(record, {{11, 23}, 1}));
  EXPECT_FALSE(IsRecordOf(record, {{11, 22}, 0}));
  EXPECT_FALSE(IsRecordOf(std::span(record).first(record.size() - 1), kKey));
}

}  // namespace
}  // namespace hearth
