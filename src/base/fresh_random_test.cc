// SPDX-License-Identifier: Apache-2.0
#include "base/fresh_random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace hearth {
namespace {

TEST(FreshRandom, FillsAllOfIt) {
  std::vector<unsigned char> bytes(1000,
                                   0);  // more than one call of the system is promised to give
  FillRandom(bytes);
  EXPECT_GT(std::set<unsigned char>(bytes.begin() + 900, bytes.end()).size(), 40u);
  FillRandom({});
}

TEST(FreshRandom, HexHasItsLength) {
  EXPECT_EQ(FreshHex(12).size(), 24u);
  EXPECT_EQ(FreshHex(12).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(FreshHex(0), "");
  EXPECT_NE(FreshHex(12), FreshHex(12));
}

TEST(FreshRandom, NoNumberFollowsFromTheOneBefore) {
  constexpr int kCount = 20'000;
  std::set<uint64_t> steps, mixed;
  int64_t bits = 0;
  uint64_t before = FreshNumber();
  for (int i = 0; i < kCount; ++i) {
    const uint64_t now = FreshNumber();
    steps.insert(now - before);
    mixed.insert(now ^ before);
    bits += std::popcount(now ^ before);
    before = now;
  }
  EXPECT_EQ(steps.size(), static_cast<size_t>(kCount)) << "a counter has one step";
  EXPECT_EQ(mixed.size(), static_cast<size_t>(kCount));
  // 64 coins each: six standard deviations.
  EXPECT_LT(std::abs(static_cast<double>(bits) - 32.0 * kCount), 6 * std::sqrt(16.0 * kCount));
}

}  // namespace
}  // namespace hearth
