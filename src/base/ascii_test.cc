// SPDX-License-Identifier: Apache-2.0
#include "base/ascii.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Ascii, LowersLettersAndNothingElse) {
  EXPECT_EQ(LowerAscii("Content-LENGTH: 5 @[`{"), "content-length: 5 @[`{");
  EXPECT_EQ(LowerAscii("AZaz\xc3\x84"), "azaz\xc3\x84") << "bytes of UTF-8 stay";
  EXPECT_EQ(LowerAscii('Q'), 'q');
}

}  // namespace
}  // namespace hearth
