// SPDX-License-Identifier: Apache-2.0
#include "talk/reply_view.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "talk/columns.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;
constexpr ViewKind kRich{.is_terminal = true, .has_styles = true, .moves_cursor = true};
constexpr ViewKind kColourless{.is_terminal = true, .has_styles = false, .moves_cursor = true};
constexpr ViewKind kPlain{.is_terminal = true};
constexpr ViewKind kPipe{};

// What a view of this kind writes, with a clock that the test turns.
class Screen {
 public:
  explicit Screen(ViewKind kind, ReasoningView reasoning = ReasoningView::kFold)
      : view(
            kind, [this](std::string_view bytes) { text += bytes; }, [this] { return now; },
            [this] { return columns; }) {
    UseUtf8();
    view.Begin(reasoning);
  }
  std::string Whole() {
    view.End();
    return text;
  }

  double now = 100;
  int columns = 40;
  std::string text;
  ReplyView view;
};

TEST(ReplyView, ContentIsRenderedOnlyWhereThereAreStyles) {
  for (const auto& [kind, wanted] :
       std::vector<std::pair<ViewKind, std::string>>{{kRich, "a \x1b[1mb\x1b[0m\n"},
                                                     {kColourless, "a **b**\n"},
                                                     {kPlain, "a **b**\n"},
                                                     {kPipe, "a **b**\n"}}) {
    Screen screen(kind);
    screen.view.Hear(Kind::kContent, "a **b");
    screen.view.Hear(Kind::kContent, "**");
    EXPECT_EQ(screen.Whole(), wanted);
  }
}

TEST(ReplyView, EndsTheLineOnce) {
  Screen screen(kPipe);
  screen.view.Hear(Kind::kContent, "line\n");
  EXPECT_EQ(screen.Whole(), "line\n");
  Screen empty(kPipe);
  EXPECT_EQ(empty.Whole(), "");
}

TEST(ReplyView, DisarmsControlsOnTerminalsAndKeepsBytesElsewhere) {
  for (const ViewKind kind : {kRich, kColourless, kPlain}) {
    Screen screen(kind);
    screen.view.Hear(Kind::kContent, "\x1b[2J!");
    EXPECT_EQ(screen.Whole(), "\\x1b[2J!\n");
  }
  Screen pipe(kPipe);
  pipe.view.Hear(Kind::kContent, "\x1b[2J!");
  EXPECT_EQ(pipe.Whole(), "\x1b[2J!\n");
}

TEST(ReplyView, ShownReasoningIsDimAndApart) {
  Screen screen(kRich, ReasoningView::kShow);
  screen.view.Hear(Kind::kReasoning, "hm **x**");
  screen.view.Hear(Kind::kContent, "yes");
  EXPECT_EQ(screen.Whole(), "\x1b[2mhm **x**\x1b[0m\n\nyes\n");
  Screen plain(kPlain, ReasoningView::kShow);
  plain.view.Hear(Kind::kReasoning, "hm");
  plain.view.Hear(Kind::kContent, "yes");
  EXPECT_EQ(plain.Whole(), "[thinking]\nhm\n\n[answer]\nyes\n");
}

TEST(ReplyView, FoldedReasoningIsOneLineAndThenItsSummary) {
  Screen screen(kRich);
  screen.view.Hear(Kind::kReasoning, "first\nsecond");
  EXPECT_EQ(screen.text, "\r\x1b[2mthinking: first second\x1b[0m\x1b[K");
  screen.now += 2.5;
  screen.view.Hear(Kind::kContent, "yes");
  EXPECT_EQ(screen.Whole(),
            "\r\x1b[2mthinking: first second\x1b[0m\x1b[K"
            "\r\x1b[K\x1b[2m[thought for 2.5 s, 2 words]\x1b[0m\nyes\n");
  Screen plain(kPlain);
  plain.view.Hear(Kind::kReasoning, "first");
  EXPECT_EQ(plain.text, "") << "no line is written twice for a screen reader";
  plain.view.Hear(Kind::kContent, "yes");
  EXPECT_EQ(plain.Whole(), "[thought for 0.0 s, 1 word]\nyes\n");
}

TEST(ReplyView, TheFoldedLineFitsNarrowTerminalsAndWideCharacters) {
  Screen screen(kColourless);
  screen.columns = 20;
  screen.view.Hear(Kind::kReasoning, "世界世界世界世界世界世界");
  const std::string line = screen.text.substr(1, screen.text.size() - 4);
  EXPECT_LE(ColumnsOf(line), 19) << line;
  EXPECT_TRUE(line.ends_with("世界")) << "its newest words: " << line;
}

TEST(ReplyView, HiddenReasoningLeavesNoTrace) {
  for (const ViewKind kind : {kRich, kPlain, kPipe}) {
    Screen screen(kind, ReasoningView::kHide);
    screen.view.Hear(Kind::kReasoning, "secret");
    screen.view.Hear(Kind::kContent, "yes");
    EXPECT_EQ(screen.Whole(), "yes\n");
  }
}

TEST(ReplyView, ReasoningWithoutAnAnswerStillEnds) {
  Screen screen(kRich);
  screen.view.Hear(Kind::kReasoning, "hm");
  screen.now += 1;
  EXPECT_TRUE(screen.Whole().ends_with("[thought for 1.0 s, 1 word]\x1b[0m\n")) << screen.text;
}

TEST(ReplyView, AWaitIsToldOnceASecondAndGoesAway) {
  Screen screen(kRich);
  screen.view.Wait();
  EXPECT_EQ(screen.text, "") << "not at once";
  screen.now += 2;
  screen.view.Wait();
  screen.view.Wait();
  EXPECT_EQ(screen.text, "\r\x1b[2mreading the prompt, 2 s\x1b[0m\x1b[K");
  screen.view.Hear(Kind::kContent, "x");
  EXPECT_TRUE(screen.text.ends_with("\r\x1b[Kx"));
  screen.text.clear();
  screen.now += 5;
  screen.view.Wait();
  EXPECT_EQ(screen.text, "") << "a reply that pauses is not being read";
  Screen plain(kPlain);
  plain.now += 5;
  plain.view.Wait();
  EXPECT_EQ(plain.text, "");
}

TEST(ReplyView, ToolCallsAreNamed) {
  Screen screen(kPipe);
  screen.view.Hear(Kind::kContent, "so:");
  screen.view.Hear(Kind::kToolCall, "look_up");
  screen.view.Hear(Kind::kToolArguments, "{\"a\":1}");
  screen.view.Hear(Kind::kToolCallEnd, "");
  EXPECT_EQ(screen.Whole(), "so:\n[calls look_up] {\"a\":1}\n");
}

TEST(ReplyView, Figures) {
  EXPECT_EQ(FiguresLine({.num_prompt = 180,
                         .num_cached = 128,
                         .num_generated = 41,
                         .first_token_s = 0.25,
                         .total_s = 4.25}),
            "41 tokens, 10.0 tokens/s, first after 0.25 s, 128 of 180 prompt tokens cached");
  EXPECT_EQ(FiguresLine({.num_prompt = 5, .num_generated = 1, .first_token_s = 1, .total_s = 1}),
            "1 token, first after 1.00 s, 0 of 5 prompt tokens cached");
}

}  // namespace
}  // namespace hearth
