// SPDX-License-Identifier: Apache-2.0
#include "text/nfc.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string Nfc(std::string_view text) {
  std::string storage;
  return std::string(NormalizeNfc(text, storage));
}

TEST(Nfc, ComposesWhatCanBeComposed) {
  EXPECT_EQ(Nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(Nfc("a\u0323\u0302"), "\u1ead");       // two marks, one letter
  EXPECT_EQ(Nfc("a\u0302\u0323"), "\u1ead");       // reordered first
  EXPECT_EQ(Nfc("\u1100\u1161\u11a8"), "\uac01");  // Hangul by arithmetic
  EXPECT_EQ(Nfc("\uac00\u11a8"), "\uac01");
  EXPECT_EQ(Nfc("\uac00\u11a7"), "\uac00\u11a7");  // no trailing consonant
}

TEST(Nfc, DecomposesWhatMustNotStayComposed) {
  EXPECT_EQ(Nfc("\u212b"), "\u00c5");        // the angstrom sign is a letter
  EXPECT_EQ(Nfc("\u0958"), "\u0915\u093c");  // excluded from composition
  EXPECT_EQ(Nfc("\ufb1d"), "\u05d9\u05b4");
  EXPECT_EQ(Nfc("\U0001d15e"), "\U0001d157\U0001d165");
}

TEST(Nfc, StopsAtWhatIsInTheWay) {
  EXPECT_EQ(Nfc("a\u0327\u0301"), "\u00e1\u0327");   // lower class between: not in the way
  EXPECT_EQ(Nfc("a\u0305\u0301"), "a\u0305\u0301");  // the same class is
  EXPECT_EQ(Nfc("a\u034f\u0301"), "a\u034f\u0301");  // so is a starter
}

TEST(Nfc, LeavesTheRestAlone) {
  const std::string_view plain = "plain \u00e9 \u4e2d\u6587 \U0001f600";
  std::string storage = "untouched";
  EXPECT_EQ(NormalizeNfc(plain, storage).data(), plain.data());
  EXPECT_EQ(storage, "untouched");
  EXPECT_EQ(Nfc("\xff e\u0301 \xe4\xb8"), "\xff \u00e9 \xe4\xb8");
  EXPECT_EQ(Nfc("e\xff\u0301"), "e\xff\u0301");
  EXPECT_EQ(Nfc("\u0eca\u0eba"), "\u0eca\u0eba");  // a class given after Unicode 9
  EXPECT_EQ(Nfc(""), "");
}

TEST(Nfc, SortsAMillionMarksInTime) {
  std::string marks = "a";
  for (int i = 0; i < 250000; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string normal = Nfc(marks);
  EXPECT_TRUE(normal.starts_with("\u1ea1\u0323"));
  EXPECT_EQ(Nfc(normal), normal);
}

}  // namespace
}  // namespace hearth
