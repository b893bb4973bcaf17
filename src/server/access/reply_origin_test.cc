// SPDX-License-Identifier: Apache-2.0
#include "server/access/reply_origin.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

ReplyOrigin AnOrigin() {
  return {"00ff10a7b3c4d5e6f7081920", 1'800'000'000, 0xfedcba9876543210u, {1, 2}, 77};
}

TEST(ReplyOriginTest, ComesBackForItsTenant) {
  const OriginSeal seal(NewCipherKey());
  const std::string sealed = seal.Seal(AnOrigin(), "anna");
  EXPECT_EQ(sealed.size(), OriginSeal::kSealedBytes);
  EXPECT_EQ(sealed.find_first_of("=.\n "), std::string::npos);
  ASSERT_TRUE(seal.Open(sealed, "anna").has_value());
  EXPECT_EQ(*seal.Open(sealed, "anna"), AnOrigin());
}

TEST(ReplyOriginTest, IsNobodyElses) {
  const OriginSeal seal(NewCipherKey()), other(NewCipherKey());
  const std::string sealed = seal.Seal(AnOrigin(), "anna");
  EXPECT_FALSE(seal.Open(sealed, "bert").has_value());
  EXPECT_FALSE(seal.Open(sealed, "").has_value());
  EXPECT_FALSE(other.Open(sealed, "anna").has_value());
}

TEST(ReplyOriginTest, NoLetterOfItCanBeChanged) {
  const OriginSeal seal(NewCipherKey());
  const std::string sealed = seal.Seal(AnOrigin(), "anna");
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(seal.Open(changed, "anna").has_value()) << i;
    EXPECT_FALSE(seal.Open(sealed.substr(0, i), "anna").has_value()) << i;
  }
  EXPECT_FALSE(seal.Open(sealed + "A", "anna").has_value());
  EXPECT_FALSE(seal.Open(std::string(1'000'000, 'A'), "anna").has_value());
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

TEST(ReplyOriginTest, KeysAreForOnePurpose) {
  EXPECT_EQ(KeyFrom("secret", "a"), KeyFrom("secret", "a"));
  EXPECT_NE(KeyFrom("secret", "a"), KeyFrom("secret", "b"));
  EXPECT_NE(KeyFrom("secret", "a"), KeyFrom("other", "a"));
}

}  // namespace
}  // namespace hearth
