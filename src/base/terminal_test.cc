// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <gtest/gtest.h>

#include "base/json.h"

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

TEST(ForTerminal, ShowsWhatReordersAndBreaksLines) {
  EXPECT_EQ(ForTerminal("a\u202eb\u2066c\u2069\u2028d\u2029"),
            "a\\u{202e}b\\u{2066}c\\u{2069}\\u{2028}d\\u{2029}");
  EXPECT_EQ(ForTerminal("\u200f\u2010\u2030\u206a"), "\u200f\u2010\u2030\u206a");  // neighbours
}

TEST(ForTerminal, ShowsBytesThatAreNoText) {
  EXPECT_EQ(ForTerminal("a\x9b"
                        "31m\xff\xc2"),
            "a\\x9b31m\\xff\\xc2");
  EXPECT_EQ(ForTerminal("\xe2\x80"), "\\xe2\\x80") << "the beginning of a character";
  EXPECT_EQ(ForTerminal("\xc0\x9b\xed\xa0\x80"), "\\xc0\\x9b\\xed\\xa0\\x80")
      << "long forms, surrogates";
}

// No byte that a terminal obeys is left, whatever stands around it.
TEST(ForTerminal, LeavesNothingThatIsObeyed) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char bytes[] = {static_cast<char>(a), static_cast<char>(b), 'm'};
      for (const std::string& text : {ForTerminal({bytes, 3}), JsonForTerminal({bytes, 3})}) {
        for (size_t i = 0; i < text.size(); ++i) {
          const auto byte = static_cast<unsigned char>(text[i]);
          EXPECT_TRUE(byte >= 0x20 || byte == '\n' || byte == '\t') << a << " " << b;
          EXPECT_NE(byte, 0x7f);
          const bool is_c1 = byte >= 0x80 && byte < 0xa0 && (i == 0 || text[i - 1] == '\xc2');
          EXPECT_FALSE(is_c1) << a << " " << b;
        }
      }
    }
  }
}

TEST(JsonForTerminal, StaysJsonOfTheSameValue) {
  const Json value = JsonObject{{"a\x7f\u009b\u202e", "\x1b[2J \u0085 \u2028 é 🙂\n\t\"\\"}};
  for (const int indent : {0, 2}) {
    const std::string text = JsonForTerminal(WriteJson(value, indent));
    Result<Json> read = ParseJson(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(WriteJson(*read), WriteJson(value));
    EXPECT_EQ(ForTerminal(text), text);
  }
  EXPECT_TRUE(ParseJson(JsonForTerminal("[1,\r\n\"\xff\"]")).ok());
}

TEST(PrintError, MasksAndDisarms) {
  ::testing::internal::CaptureStderr();
  PrintError("warning: %s: %s %d\n", "redis://:hunter2@h", "\x1b[2J\u202e", 7);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: redis://:***@h: \\x1b[2J\\u{202e} 7\n");
}

TEST(PrintOut, Disarms) {
  ::testing::internal::CaptureStdout();
  PrintOut("a\x1b[2J\u009b\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a\\x1b[2J\\x9b\n");
}

TEST(Terminal, WhatIsNoneHasEightyColumns) { EXPECT_EQ(TerminalColumns(-1), 80); }

}  // namespace
}  // namespace hearth
