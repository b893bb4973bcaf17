// SPDX-License-Identifier: Apache-2.0
#include "talk/columns.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

class Columns : public ::testing::Test {
 protected:
  void SetUp() override { UseUtf8(); }
};

TEST_F(Columns, WideAndCombiningCharacters) {
  EXPECT_EQ(ColumnsOf(""), 0);
  EXPECT_EQ(ColumnsOf("abc"), 3);
  EXPECT_EQ(ColumnsOf("世界"), 4);
  EXPECT_EQ(ColumnsOf("e\xcc\x81"), 1) << "an accent of its own takes no column";
  EXPECT_EQ(ColumnsOf("🙂"), 2);
  EXPECT_EQ(ColumnsOf("\xff\xfe"), 2) << "bytes that are no text";
}

TEST_F(Columns, TheEndThatFits) {
  EXPECT_EQ(LastColumns("abcdef", 3), "def");
  EXPECT_EQ(LastColumns("abc", 10), "abc");
  EXPECT_EQ(LastColumns("a世界b", 4), "界b") << "half of a wide character does not fit";
  EXPECT_EQ(LastColumns("abc", 0), "");
  EXPECT_EQ(LastColumns("abc", -5), "");
}

}  // namespace
}  // namespace hearth
