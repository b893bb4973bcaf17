// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ForTerminal, PassesTextThrough) {
  EXPECT_EQ(ForTerminal("Grüße, 世界\n\t🙂"), "Grüße, 世界\n\t🙂");
}

TEST(ForTerminal, DisarmsEscapeSequences) {
  EXPECT_EQ(ForTerminal("a\x1b[2Jb\x07"), "a\\x1b[2Jb\\x07");
  EXPECT_EQ(ForTerminal("\r\b\x7f"), "\\x0d\\x08\\x7f");
}

TEST(ForTerminal, DisarmsTheEightBitControls) {
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "31m"),
            "\\x9b31m");
  EXPECT_EQ(ForTerminal("\xc2\xa0"), "\xc2\xa0");  // a no-break space is no control
}

TEST(Terminal, WhatIsNoneHasEightyColumns) { EXPECT_EQ(TerminalColumns(-1), 80); }

}  // namespace
}  // namespace hearth
