// SPDX-License-Identifier: Apache-2.0
#include "tiers/record_seal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hearth {
namespace {

std::vector<std::byte> Some(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

constexpr TierKey kKey{{1, 2}, 3};

TEST(RecordSeal, OpensWhatItSealed) {
  const RecordSeal seal("a secret");
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{300'000}}) {
    const std::vector<std::byte> record = Some(size);
    const std::vector<std::byte> sealed = seal.Seal(kKey, record);
    ASSERT_EQ(sealed.size(), size + RecordSeal::kExtraBytes);
    EXPECT_EQ(seal.Open(kKey, sealed), record);
    std::vector<std::byte> same = sealed;
    const auto opened = seal.OpenInPlace(kKey, same);
    ASSERT_TRUE(opened);
    EXPECT_TRUE(std::ranges::equal(*opened, record));
    EXPECT_EQ(RecordSeal("a secret").Open(kKey, sealed), record) << "another process";
  }
}

TEST(RecordSeal, TellsNothing) {
  const RecordSeal seal("a secret");
  const std::vector<std::byte> record(4096, std::byte{'x'});
  const std::vector<std::byte> once = seal.Seal(kKey, record), twice = seal.Seal(kKey, record);
  EXPECT_NE(once, twice) << "the same record is not to be recognised";
  const std::vector<std::byte> piece(8, std::byte{'x'});
  EXPECT_TRUE(std::ranges::search(once, piece).empty());
}

TEST(RecordSeal, RefusesEveryChange) {
  const RecordSeal seal("a secret");
  const std::vector<std::byte> sealed = seal.Seal(kKey, Some(100));
  for (size_t i = 0; i < sealed.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> changed = sealed;
      changed[i] ^= static_cast<std::byte>(1 << bit);
      ASSERT_FALSE(seal.Open(kKey, changed)) << "byte " << i << " bit " << bit;
      ASSERT_FALSE(seal.OpenInPlace(kKey, changed)) << "byte " << i << " bit " << bit;
    }
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    ASSERT_FALSE(seal.Open(kKey, std::span(sealed).first(size))) << size;
    std::vector<std::byte> cut(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(seal.OpenInPlace(kKey, cut)) << size;
  }
  std::vector<std::byte> longer = sealed;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(seal.Open(kKey, longer));
}

TEST(RecordSeal, RefusesOtherKeysAndSecrets) {
  const std::vector<std::byte> sealed = RecordSeal("a secret").Seal(kKey, Some(100));
  EXPECT_FALSE(RecordSeal("a secret").Open({{1, 3}, 3}, sealed));
  EXPECT_FALSE(RecordSeal("a secret").Open({{0, 2}, 3}, sealed));
  EXPECT_FALSE(RecordSeal("a secret").Open({{1, 2}, 2}, sealed));
  EXPECT_FALSE(RecordSeal("another").Open(kKey, sealed));
  EXPECT_FALSE(RecordSeal("").Open(kKey, sealed));
}

}  // namespace
}  // namespace hearth
