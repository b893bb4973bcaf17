// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace hearth {
namespace {

TEST(Status, IsOkByDefault) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
}

TEST(Status, WithinReadsLikeAPath) {
  const Status status = Error(Code::kCorrupt, "expected %d bytes, found %s", 12, "3")
                            .Within("layer 3")
                            .Within("x.gguf");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "x.gguf: layer 3: expected 12 bytes, found 3");
}

TEST(Status, WithinLeavesSuccessAlone) {
  const Status status = Status().Within("anything");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.message(), "");
}

TEST(Result, HoldsAValue) {
  Result<std::string> result = std::string("word");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, "word");
  EXPECT_EQ(result->size(), 4u);
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(*std::move(result).Within("ignored"), "word");
}

TEST(Result, HoldsAnError) {
  Result<int> result = Error(Code::kNotFound, "no tensor");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kNotFound);
  const Result<int> outer = std::move(result).Within("m.gguf");
  EXPECT_EQ(outer.status().message(), "m.gguf: no tensor");
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> owned = *std::move(result);
  EXPECT_EQ(*owned, 7);
}

TEST(ResultDeathTest, ReadingAnErrorIsABug) {
  Result<int> result = Error(Code::kIo, "disk");
  EXPECT_DEATH(static_cast<void>(*result), "bug at .*result.h");
  EXPECT_DEATH(static_cast<void>(Result<int>(Status())), "bug at .*result.h");
}

Result<int> Half(int value) {
  if (value % 2 != 0) return Error(Code::kInvalid, "%d is odd", value);
  return value / 2;
}

Status TwiceEven(int value) { return Half(value).status(); }

Result<int> Quarter(int value) {
  HEARTH_TRY(TwiceEven(value));
  HEARTH_ASSIGN(const int half, Half(value));
  HEARTH_ASSIGN(const int quarter, Half(half).Within("second half"));
  return quarter;
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(3).status().message(), "3 is odd");
  EXPECT_EQ(Quarter(6).status().message(), "second half: 3 is odd");
}

TEST(Printf, GrowsToFit) {
  const std::string long_text(5000, 'x');
  EXPECT_EQ(Printf("%s!", long_text.c_str()), long_text + "!");
  EXPECT_EQ(Printf("%s", ""), "");
}

TEST(Quoted, ShowsOutsideBytesSafely) {
  EXPECT_EQ(Quoted("plain text"), "\"plain text\"");
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a\"b\\c"), "\"a\\x22b\\x5cc\"");
  EXPECT_EQ(Quoted(std::string_view("\0\x1b[31m\x7f\xff", 8)), "\"\\x00\\x1b[31m\\x7f\\xff\"");
}

TEST(Quoted, CutsAtEightyBytes) {
  EXPECT_EQ(Quoted(std::string(80, 'a')), "\"" + std::string(80, 'a') + "\"");
  EXPECT_EQ(Quoted(std::string(81, 'a')), "\"" + std::string(80, 'a') + "\"...");
  EXPECT_EQ(Quoted(std::string(1 << 20, '\n')).size(), 80u * 4 + 5);
}

TEST(CheckDeathTest, DiesWithPlaceAndCondition) {
  EXPECT_DEATH(HEARTH_CHECK(1 + 1 == 3), "bug at .*result_test.cc:[0-9]+: 1 \\+ 1 == 3");
  HEARTH_CHECK(true);
}

}  // namespace
}  // namespace hearth
