// SPDX-License-Identifier: Apache-2.0
#include "talk/interrupts.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

namespace hearth {
namespace {

bool IsReadable() {
  pollfd fd{InterruptFd(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

TEST(Interrupts, WakeWhoeverWaitsAndSayWhatCame) {
  CatchInterrupts();
  EXPECT_FALSE(IsReadable());
  EXPECT_FALSE(Interrupted());

  raise(SIGWINCH);
  EXPECT_TRUE(IsReadable());
  EXPECT_FALSE(Interrupted()) << "a resized window stops nothing";
  TerminalNews news = TakeTerminalNews();
  EXPECT_TRUE(news.is_resized);
  EXPECT_FALSE(news.is_continued);
  EXPECT_FALSE(IsReadable());

  raise(SIGCONT);
  news = TakeTerminalNews();
  EXPECT_TRUE(news.is_continued);
  EXPECT_FALSE(news.is_resized) << "told once";

  raise(SIGINT);
  EXPECT_TRUE(IsReadable());
  EXPECT_TRUE(Interrupted());
  EXPECT_FALSE(IsEndAsked());
  news = TakeTerminalNews();
  EXPECT_FALSE(news.is_resized || news.is_continued);
  Interrupted() = false;

  raise(SIGTERM);
  EXPECT_TRUE(Interrupted()) << "what runs is stopped, too";
  EXPECT_TRUE(IsEndAsked());
  Interrupted() = false;
  EXPECT_TRUE(IsEndAsked()) << "an end is not taken back";
}

}  // namespace
}  // namespace hearth
