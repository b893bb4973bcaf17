// SPDX-License-Identifier: Apache-2.0
#include "kv/block_key.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "kv/layout.h"
namespace hearth {
namespace {

// The bytes 0, 1, 2, ... as seed and salt, and again as parent and tokens. Expected values from a
// separate implementation of SipHash-2-4-128 that gives the published value for the empty message.
TEST(BlockKey, IsSipHashOfParentAndTokens) {
  std::vector<uint8_t> bytes(80);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  ChainSeed chain;
  BlockKey parent;
  std::vector<Token> tokens(kDefaultBlockTokens);
  std::memcpy(&chain.seed, &bytes[0], 8);
  std::memcpy(&chain.salt, &bytes[8], 8);
  std::memcpy(&parent.lo, &bytes[0], 8);
  std::memcpy(&parent.hi, &bytes[8], 8);
  std::memcpy(tokens.data(), &bytes[16], 64);
  const BlockKey key = ChainKey(chain, parent, tokens);
  EXPECT_EQ(key.lo, 0xf870437ae16ac7d2u);
  EXPECT_EQ(key.hi, 0x22f80d5a79a4fb58u);
}

TEST(BlockKey, DependsOnEverything) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  std::vector<Token> tokens(kDefaultBlockTokens, 7);
  const auto add = [&](const ChainSeed& chain, const BlockKey& parent) {
    const BlockKey key = ChainKey(chain, parent, tokens);
    return seen.insert({key.hi, key.lo}).second;
  };
  EXPECT_TRUE(add({1, 2}, {3, 4}));
  EXPECT_FALSE(add({1, 2}, {3, 4}));
  EXPECT_TRUE(add({2, 2}, {3, 4}));
  EXPECT_TRUE(add({1, 3}, {3, 4}));
  EXPECT_TRUE(add({1, 2}, {4, 4}));
  EXPECT_TRUE(add({1, 2}, {3, 5}));
  for (int i = 0; i < kDefaultBlockTokens; ++i) {
    tokens[i] += 1;
    EXPECT_TRUE(add({1, 2}, {3, 4})) << i;
  }
}

// Also the halves alone: tables use the lower bits of one.
TEST(BlockKey, HalvesOfSimilarBlocksDiffer) {
  std::set<uint64_t> low, high;
  std::vector<Token> tokens(kDefaultBlockTokens, 0);
  for (int i = 0; i < 100000; ++i) {
    tokens[i % kDefaultBlockTokens] = i;
    const BlockKey key = ChainKey({}, {}, tokens);
    low.insert(key.lo);
    high.insert(key.hi);
  }
  EXPECT_EQ(low.size(), 100000u);
  EXPECT_EQ(high.size(), 100000u);
}

TEST(BlockKey, BlocksOfAnySizeHaveKeysOfTheirOwn) {
  std::set<uint64_t> seen;
  std::vector<Token> tokens;
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(seen.insert(ChainKey({}, {}, tokens).lo).second) << i;
    tokens.push_back(0);
  }
  tokens.back() = 1;
  EXPECT_TRUE(seen.insert(ChainKey({}, {}, tokens).lo).second);
  tokens.pop_back();
  tokens.back() = 1;
  EXPECT_TRUE(seen.insert(ChainKey({}, {}, tokens).lo).second) << "also an odd one's last token";
}

TEST(BlockKey, FoldedSeedsDependOnOrder) {
  EXPECT_NE(FoldSeed(FoldSeed(0, 1), 2), FoldSeed(FoldSeed(0, 2), 1));
  EXPECT_NE(FoldSeed(0, 0), 0u);
}

}  // namespace
}  // namespace hearth
