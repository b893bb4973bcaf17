// SPDX-License-Identifier: Apache-2.0
#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(ByteReader, ReadsLittleEndianNumbersInOrder) {
  ByteReader reader(Bytes("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xff"));
  EXPECT_EQ(*reader.U8("a"), 0x01u);
  EXPECT_EQ(*reader.U16("b"), 0x0302u);
  EXPECT_EQ(*reader.U32("c"), 0x07060504u);
  EXPECT_EQ(reader.position(), 7u);
  EXPECT_EQ(*reader.U64("d"), 0xff0e0d0c0b0a0908u);
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(ByteReader, ShortInputIsAnErrorThatSaysWhere) {
  ByteReader reader(Bytes("abcde"));
  ASSERT_TRUE(reader.U32("magic").ok());
  const Status status = reader.U32("version").status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(),
            "version at byte 4: expected 4 bytes, only 1 are left; is the file complete?");
  // A failed read takes nothing.
  EXPECT_EQ(reader.position(), 4u);
  EXPECT_EQ(*reader.U8("rest"), 'e');
}

TEST(ByteReader, HugeCountsAreRefusedWithoutWrapping) {
  ByteReader reader(Bytes("abc"));
  ASSERT_TRUE(reader.U8("first").ok());
  EXPECT_FALSE(reader.Bytes(UINT64_MAX, "data").ok());
  EXPECT_FALSE(reader.Bytes(UINT64_MAX - 1, "data").ok());
  EXPECT_FALSE(reader.Bytes(3, "data").ok());
  EXPECT_EQ(reader.Bytes(2, "data")->size(), 2u);
  EXPECT_EQ(reader.Bytes(0, "nothing")->size(), 0u);
}

TEST(ByteReader, StringsAreViewsIntoTheInput) {
  const std::string text("\x05\0\0\0\0\0\0\0helloX", 14);
  ByteReader reader(Bytes(text));
  const std::string_view found = *reader.String(5, "name");
  EXPECT_EQ(found, "hello");
  EXPECT_EQ(found.data(), text.data() + 8);
  EXPECT_EQ(reader.remaining(), 1u);
}

TEST(ByteReader, StringsRespectBothLimits) {
  const std::string text("\x05\0\0\0\0\0\0\0hello", 13);
  ByteReader limited(Bytes(text));
  EXPECT_EQ(limited.String(4, "name").status().message(),
            "name at byte 0: a string of 5 bytes, the limit is 4");
  ByteReader cut(Bytes(std::string_view(text).substr(0, 12)));
  EXPECT_EQ(cut.String(100, "name").status().message(),
            "name at byte 8: expected 5 bytes, only 4 are left; is the file complete?");
  ByteReader headless(Bytes(std::string_view(text).substr(0, 7)));
  EXPECT_EQ(headless.String(100, "name").status().message(),
            "name at byte 0: expected 8 bytes, only 7 are left; is the file complete?");
}

TEST(ByteReader, CanHoldBoundsAllocations) {
  ByteReader reader(Bytes("0123456789"));
  EXPECT_TRUE(reader.CanHold(10, 1, "x").ok());
  EXPECT_TRUE(reader.CanHold(5, 2, "x").ok());
  EXPECT_FALSE(reader.CanHold(11, 1, "x").ok());
  ASSERT_TRUE(reader.U8("first").ok());
  EXPECT_EQ(reader.CanHold(5, 2, "tensors").message(),
            "tensors at byte 1: 5 elements of at least 2 bytes cannot fit in the 9 bytes left; is "
            "the file complete?");
  // 2^62 * 4 wraps to zero.
  EXPECT_FALSE(reader.CanHold(uint64_t{1} << 62, 4, "x").ok());
  EXPECT_FALSE(reader.CanHold(UINT64_MAX, UINT64_MAX, "x").ok());
}

TEST(ByteReader, EveryTruncationOfARecordIsRefused) {
  const std::string text("\x03\0\0\0\0\0\0\0key\x2a\0\0\0", 15);
  for (size_t length = 0; length <= text.size(); ++length) {
    ByteReader reader(Bytes(std::string_view(text).substr(0, length)));
    const auto name = reader.String(16, "name");
    const auto value = reader.U32("value");
    EXPECT_EQ(name.ok() && value.ok(), length == text.size()) << length;
  }
}

}  // namespace
}  // namespace hearth
