// SPDX-License-Identifier: Apache-2.0
#include "server/access/reply_origin.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ReplyOriginTest, ComesBackFromItsBytes) {
  const ReplyOrigin origin{
      "00ff10a7b3c4d5e6f7081920", 1'800'000'000, 0xfedcba9876543210u, {1, 2}, 77};
  const std::string bytes = AsBytes(origin);
  EXPECT_EQ(bytes.size(), kOriginBytes);
  EXPECT_EQ(ReplyOriginFrom(bytes), origin);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 1;
    EXPECT_NE(ReplyOriginFrom(changed), origin) << "byte " << i << " is part of it";
    EXPECT_EQ(ReplyOriginFrom(bytes.substr(0, i)), std::nullopt);
  }
  EXPECT_EQ(ReplyOriginFrom(bytes + "x"), std::nullopt);
}

TEST(ReplyOriginTest, BasisKeepsAllPartsApart) {
  const std::vector<Token> prompt = {1, 2, 3}, other = {1, 2, 4};
  const std::vector<std::string> words = {"ab", "c"}, shifted = {"a", "bc"};
  const uint64_t basis = BasisOf(words, prompt);
  EXPECT_EQ(basis, BasisOf(words, prompt));
  EXPECT_NE(basis, BasisOf(words, other));
  EXPECT_NE(basis, BasisOf(shifted, prompt));
  EXPECT_NE(basis, BasisOf(words, prompt, 1));
}

}  // namespace
}  // namespace hearth
