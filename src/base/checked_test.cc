// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace hearth {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

TEST(Checked, ComputesSoundNumbers) {
  EXPECT_EQ((Checked(3) + 4).value(), 7u);
  EXPECT_EQ((Checked(3) * 4).value(), 12u);
  EXPECT_EQ((Checked(kMax) + 0).value(), kMax);
  EXPECT_EQ((Checked(kMax) * 1).value(), kMax);
  EXPECT_EQ((Checked(kMax) * 0).value(), 0u);
}

TEST(Checked, RemembersOverflow) {
  EXPECT_EQ((Checked(kMax) + 1).value(), std::nullopt);
  EXPECT_EQ((Checked(uint64_t{1} << 32) * (uint64_t{1} << 32)).value(), std::nullopt);
  // Once wrong, always wrong, whatever follows and on whichever side it stands.
  EXPECT_EQ(((Checked(kMax) + 1) * 0).value(), std::nullopt);
  EXPECT_EQ((Checked(0) * (Checked(kMax) + 1)).value(), std::nullopt);
  EXPECT_EQ((Checked(1) + (Checked(kMax) * 2)).value(), std::nullopt);
  EXPECT_EQ((Checked(kMax) + 1).AlignedUp(8).value(), std::nullopt);
  EXPECT_FALSE((Checked(kMax) + 1).FitsIn(kMax));
}

TEST(Checked, AlignsUp) {
  EXPECT_EQ(Checked(0).AlignedUp(32).value(), 0u);
  EXPECT_EQ(Checked(1).AlignedUp(32).value(), 32u);
  EXPECT_EQ(Checked(32).AlignedUp(32).value(), 32u);
  EXPECT_EQ(Checked(33).AlignedUp(1).value(), 33u);
  EXPECT_EQ(Checked(kMax - 31).AlignedUp(32).value(), kMax - 31);
  EXPECT_EQ(Checked(kMax - 30).AlignedUp(32).value(), std::nullopt);
}

TEST(Checked, FitsInIsInclusive) {
  EXPECT_TRUE(Checked(7).FitsIn(7));
  EXPECT_FALSE(Checked(8).FitsIn(7));
  EXPECT_TRUE(Checked(0).FitsIn(0));
}

TEST(Checked, ProductOfNothingIsOne) {
  EXPECT_EQ(CheckedProduct({}).value(), 1u);
  const std::array<uint64_t, 3> shape = {32, 5760, 90};
  EXPECT_EQ(CheckedProduct(shape).value(), 32u * 5760u * 90u);
  // 2^62 * 4 wraps to 0 in plain arithmetic, and 0 * anything afterwards stays an error.
  const std::array<uint64_t, 3> hostile = {uint64_t{1} << 62, 4, 0};
  EXPECT_EQ(CheckedProduct(hostile).value(), std::nullopt);
}

TEST(Checked, AgreesWithWideArithmetic) {
  __extension__ using Wide = unsigned __int128;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t a = random() >> (random() % 64);
    const uint64_t b = random() >> (random() % 64);
    const Wide sum = static_cast<Wide>(a) + b;
    const Wide product = static_cast<Wide>(a) * b;
    ASSERT_EQ((Checked(a) + b).value().has_value(), sum <= kMax);
    ASSERT_EQ((Checked(a) * b).value().has_value(), product <= kMax);
    if (product <= kMax) {
      ASSERT_EQ((Checked(a) * b).value(), static_cast<uint64_t>(product));
    }
  }
}

}  // namespace
}  // namespace hearth
