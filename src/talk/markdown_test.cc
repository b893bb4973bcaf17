// SPDX-License-Identifier: Apache-2.0
#include "talk/markdown.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace hearth {
namespace {

// What a reader sees: each byte with the codes of its style.
using Seen = std::vector<std::pair<char, std::string>>;

Seen Look(const std::string& shown) {
  Seen seen;
  std::string codes;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] != '\x1b') {
      seen.push_back({shown[i], codes});
      continue;
    }
    const size_t end = shown.find('m', i);
    codes = shown.substr(i + 2, end - i - 2);
    if (codes == "0") codes.clear();
    i = end;
  }
  EXPECT_EQ(codes, "") << "a style is left on";
  return seen;
}

std::string Text(const Seen& seen) {
  std::string text;
  for (const auto& [byte, codes] : seen) text += byte;
  return text;
}

std::string Render(std::string_view text) {
  MarkdownStream stream;
  std::string out = stream.Feed(text);
  return out + stream.Finish();
}

std::string RenderByBytes(std::string_view text) {
  MarkdownStream stream;
  std::string out;
  for (const char c : text) out += stream.Feed(std::string_view(&c, 1));
  return out + stream.Finish();
}

TEST(Markdown, Emphasis) {
  EXPECT_EQ(Render("a **b** c"), "a \x1b[1mb\x1b[0m c");
  EXPECT_EQ(Render("*i* _j_"), "\x1b[3mi\x1b[0m \x1b[3mj\x1b[0m");
  EXPECT_EQ(Render("***both***"), "\x1b[1;3mboth\x1b[0m");
  EXPECT_EQ(Text(Look(Render("**a *b* c**"))), "a b c");
  EXPECT_EQ(Look(Render("**a *b***")), Look("\x1b[1ma \x1b[0m\x1b[1;3mb\x1b[0m"));
}

TEST(Markdown, WhatIsNoEmphasisStays) {
  for (const char* text : {"2 * 3 * 4", "snake_case_name", "a ** b", "5*", "**open", "*open line",
                           "****", "_", "__init", "a_b_c_", "x ** y ** z"}) {
    EXPECT_EQ(Render(text), text);
    EXPECT_EQ(RenderByBytes(text), text);
  }
}

TEST(Markdown, CodeSpans) {
  EXPECT_EQ(Render("use `a*b*c` now"), "use \x1b[36ma*b*c\x1b[0m now");
  EXPECT_EQ(Render("``a`b``"), "\x1b[36ma`b\x1b[0m");
  EXPECT_EQ(Render("an `open one"), "an `open one");
  EXPECT_EQ(Render("*a `b*c` d*"), "\x1b[3ma \x1b[0m\x1b[3;36mb*c\x1b[0m\x1b[3m d\x1b[0m");
}

TEST(Markdown, Escapes) { EXPECT_EQ(Render("\\*not\\* \\x1b \\"), "*not* \\x1b \\"); }

TEST(Markdown, Lines) {
  EXPECT_EQ(Render("## Title\ntext"), "\x1b[2m##\x1b[0m\x1b[1m Title\x1b[0m\ntext");
  EXPECT_EQ(Render("- one\n  * two\n+ 3\n-4\n"),
            "\xe2\x80\xa2 one\n  \xe2\x80\xa2 two\n"
            "\xe2\x80\xa2 3\n-4\n");
  EXPECT_EQ(Render("1. **a**"), "1. \x1b[1ma\x1b[0m");
  EXPECT_EQ(Render("#hashtag"), "#hashtag");
  EXPECT_EQ(Render("---\n***\n"), "---\n***\n");
  EXPECT_EQ(Render("> said"), "\x1b[2m>\x1b[0m\x1b[3m said\x1b[0m");
}

TEST(Markdown, FencedBlocksKeepEveryMark) {
  const std::string text = "```py\na = b ** c\n# x\n``\n```\n**b**\n";
  EXPECT_EQ(Render(text),
            "\x1b[2m```py\x1b[0m\n\x1b[36ma = b ** c\x1b[0m\n\x1b[36m# x\x1b[0m\n"
            "\x1b[36m``\x1b[0m\n\x1b[2m```\x1b[0m\n\x1b[1mb\x1b[0m\n");
  EXPECT_EQ(Text(Look(Render("~~~\n```\n~~~~\nx"))), "~~~\n```\n~~~~\nx");
  EXPECT_EQ(Text(Look(Render("```\nopen to the end"))), "```\nopen to the end");
}

TEST(Markdown, ShowsTextAtOnceAndHoldsBackOnlyMarks) {
  MarkdownStream stream;
  EXPECT_EQ(stream.Feed("Hello wor"), "Hello wor");
  EXPECT_EQ(stream.Feed("ld **bo"), "ld ");
  EXPECT_EQ(stream.Feed("ld**"), "");  // a third * could follow
  EXPECT_EQ(stream.Feed("!"), "\x1b[1mbold\x1b[0m!");
  EXPECT_EQ(stream.Finish(), "");
  EXPECT_EQ(stream.Feed("- x"), "\xe2\x80\xa2 x") << "a new text starts a new line";
}

TEST(Markdown, AMarkWithoutItsOtherHalfDoesNotHoldTheTextForever) {
  MarkdownStream stream;
  EXPECT_EQ(stream.Feed("**" + std::string(2000, 'x')), "");
  EXPECT_EQ(stream.Feed(std::string(100, 'x')), "**" + std::string(2100, 'x'));
}

// Of any text, cut anyhow: nothing is lost but marks, and the cut cannot be seen.
TEST(Markdown, LosesNothingHoweverItIsCut) {
  const std::vector<std::string> pieces = {
      "*", "**", "_", "`",  "```", "~~~", "\\", "#",  "- ", "> ", "\n",        " ",
      "a", "Z9", "ü", "世", ".",   "1. ", "+ ", "__", "``", "\t", "word word", "\n\n"};
  const auto without_marks = [](std::string text) {
    for (const char* bullet : {"\xe2\x80\xa2"}) {
      for (size_t at = text.find(bullet); at != std::string::npos; at = text.find(bullet)) {
        text.erase(at, 3);
      }
    }
    std::erase_if(text,
                  [](char c) { return std::string_view("*_`\\-+").find(c) != std::string::npos; });
    return text;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t i = random() % 24; i > 0; --i) text += pieces[random() % pieces.size()];
    const std::string whole = Render(text);
    ASSERT_EQ(without_marks(Text(Look(whole))), without_marks(text)) << text;
    ASSERT_EQ(Look(RenderByBytes(text)), Look(whole)) << text;
  }
}

}  // namespace
}  // namespace hearth
