// SPDX-License-Identifier: Apache-2.0
#include "text/utf8_stream.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string Whole(std::string_view bytes) {
  Utf8Stream stream;
  std::string out;
  stream.Append(bytes, out);
  stream.Finish(out);
  return out;
}

constexpr char kBad[] = "\xef\xbf\xbd";

TEST(Utf8Stream, PassesValidTextThrough) {
  const std::string text = "a\xc3\xa9\xe0\xa4\xa8\xf0\x9f\x99\x82\xf4\x8f\xbf\xbf\xee\x80\x80z";
  EXPECT_EQ(Whole(text), text);
  EXPECT_EQ(Whole(std::string_view("\0x", 2)), std::string_view("\0x", 2));
}

TEST(Utf8Stream, HoldsBackASplitCodePoint) {
  Utf8Stream stream;
  std::string out;
  stream.Append("hi \xf0\x9f", out);
  EXPECT_EQ(out, "hi ");
  EXPECT_EQ(stream.held_bytes(), 2u);
  stream.Append("\x99", out);
  EXPECT_EQ(out, "hi ");
  stream.Append("\x82!", out);
  EXPECT_EQ(out, "hi \xf0\x9f\x99\x82!");
  EXPECT_EQ(stream.held_bytes(), 0u);
}

TEST(Utf8Stream, ReplacesEachLongestBeginning) {
  const std::string bad = kBad;
  EXPECT_EQ(Whole("\x80"), bad);
  EXPECT_EQ(Whole("\xc0\xaf"), bad + bad);            // overlong: neither byte begins anything
  EXPECT_EQ(Whole("\xe0\x80\x80"), bad + bad + bad);  // overlong
  EXPECT_EQ(Whole("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(Whole("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(Whole("\xf5"), bad);
  EXPECT_EQ(Whole("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), bad + bad + bad + bad + "A");
  EXPECT_EQ(Whole("\xf0\x9f\x99"), bad);  // cut at the end: one, not three
  EXPECT_EQ(Whole("x\xe2\x82y"), "x" + bad + "y");
}

TEST(Utf8Stream, IsReadyAgainAfterFinish) {
  Utf8Stream stream;
  std::string out;
  stream.Append("\xe2\x82", out);
  stream.Finish(out);
  stream.Append("\xac", out);
  stream.Finish(out);
  EXPECT_EQ(out, std::string(kBad) + kBad);
}

TEST(Utf8Stream, DoesNotDependOnTheCuts) {
  // Bytes that make many half-valid sequences.
  constexpr uint8_t kInteresting[] = {0x41, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc3,
                                      0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff};
  uint32_t seed = 7;
  const auto random = [&seed](uint32_t limit) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % limit;
  };
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (uint32_t i = random(12); i > 0; --i) {
      bytes += static_cast<char>(kInteresting[random(sizeof kInteresting)]);
    }
    Utf8Stream stream;
    std::string out;
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = 1 + random(3);
      stream.Append(std::string_view(bytes).substr(at, count), out);
      ASSERT_LE(stream.held_bytes(), 3u);
      at += count;
    }
    stream.Finish(out);
    ASSERT_EQ(out, Whole(bytes));
  }
}

}  // namespace
}  // namespace hearth
