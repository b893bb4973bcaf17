// SPDX-License-Identifier: Apache-2.0
#include "kv/tier_bytes.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::vector<std::byte> Some(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(TierBytes, ComparesWhatItHolds) {
  EXPECT_TRUE(TierBytes().empty());
  EXPECT_EQ(TierBytes(), TierBytes(Some(0)));
  EXPECT_EQ(TierBytes(Some(9)), TierBytes(Some(9)));
  EXPECT_FALSE(TierBytes(Some(9)) == TierBytes(Some(8)));
  EXPECT_EQ(TierBytes(Some(9)).Copy(), Some(9));
}

TEST(TierBytes, KeepsItsMemoryAndSharesIt) {
  auto owner = std::make_shared<const std::vector<std::byte>>(Some(100));
  const std::weak_ptr<const void> memory = owner;
  TierBytes part{std::span(*owner).subspan(10, 20), owner};
  owner.reset();
  EXPECT_FALSE(memory.expired());
  const std::vector<std::byte> all = Some(100);
  EXPECT_EQ(part, TierBytes(std::vector<std::byte>(all.begin() + 10, all.begin() + 30)));
  TierBytes copy = part;
  EXPECT_EQ(copy.data(), part.data());
  part = {};
  EXPECT_FALSE(memory.expired());
  const TierBytes moved = std::move(copy);
  EXPECT_EQ(moved.size(), 20u);
  EXPECT_FALSE(memory.expired());
}

}  // namespace
}  // namespace hearth
