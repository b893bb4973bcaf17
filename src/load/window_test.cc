// SPDX-License-Identifier: Apache-2.0
// The steady window's two moments, and the figures inside it.
#include "load/window.h"

#include <gtest/gtest.h>
namespace hearth {
namespace {

LoadReply Reply(int chat, double sent_s, std::vector<double> heard_s) {
  LoadReply reply;
  reply.chat = chat;
  reply.sent_s = sent_s;
  reply.ended_s = heard_s.back();
  reply.num_prompt = 10;
  reply.num_generated = static_cast<int>(heard_s.size());
  reply.heard_s = std::move(heard_s);
  return reply;
}

TEST(SteadyWindow, OpensWhenAllHaveSpokenAndClosesWhenAClientHasNoChat) {
  // Two clients, four chats of one or two turns: the third chat begins when the first has ended.
  const std::vector<LoadReply> replies = {
      Reply(0, 0, {1, 2}),    // chat 0, its first turn
      Reply(1, 0, {3, 4}),    // the last of the first two to speak
      Reply(0, 2, {5, 6}),    // chat 0 ends at 6
      Reply(2, 6, {7, 8}),    // takes its client
      Reply(1, 4, {8.5, 9}),  // chat 1 ends at 9
      Reply(3, 9, {10, 12}),  // the last one to begin
  };
  const std::optional<LoadWindow> window = SteadyWindow(replies, 2, 4);
  ASSERT_TRUE(window.has_value());
  EXPECT_DOUBLE_EQ(window->from_s, 3);
  // Ends are 6, 8, 9, 12. With 9 three have ended, one is left: a client idles.
  EXPECT_DOUBLE_EQ(window->to_s, 9);
  EXPECT_DOUBLE_EQ(SteadyWindow(replies, 1, 4)->from_s, 1);
  EXPECT_DOUBLE_EQ(SteadyWindow(replies, 1, 4)->to_s, 12);
}

TEST(SteadyWindow, IsNoneWithoutAStretchInWhichAllAreBusy) {
  EXPECT_FALSE(SteadyWindow({}, 1, 1).has_value());
  const std::vector<LoadReply> apart = {Reply(0, 0, {1, 2}), Reply(1, 0, {3, 4})};
  EXPECT_FALSE(SteadyWindow(apart, 2, 2).has_value()) << "one ended before the other spoke";
  EXPECT_FALSE(SteadyWindow(apart, 2, 3).has_value()) << "a chat left no reply";
  EXPECT_FALSE(SteadyWindow(apart, 3, 2).has_value()) << "fewer chats than clients";
}

TEST(SteadyRates, CountsWhatLiesInsideAndWhatPromptsTook) {
  const LoadWindow window{.from_s = 10, .to_s = 20};
  const std::vector<LoadReply> replies = {Reply(0, 0, {9, 10, 11, 12}),      // two inside
                                          Reply(1, 0, {15, 19, 20, 20.5})};  // three inside
  const std::vector<MeteredStep> steps = {
      {.start_s = 9.5, .run_s = 5, .tokens = 99, .sequences = 9, .prompt_tokens = 99, .prompts = 9},
      {.start_s = 10, .run_s = 1, .tokens = 4, .sequences = 4},
      {.start_s = 12, .run_s = 1, .tokens = 4, .sequences = 4},
      {.start_s = 14, .run_s = 3, .tokens = 33, .sequences = 4, .prompt_tokens = 30, .prompts = 1},
      {.start_s = 17, .run_s = 0.5, .tokens = 5, .sequences = 4, .prompt_tokens = 2, .prompts = 1},
      {.start_s = 18, .run_s = 1, .tokens = 4, .sequences = 4},
      {.start_s = 19.5, .run_s = 1, .tokens = 4, .sequences = 4}};
  const SteadyRates rates = RatesIn(window, replies, steps);
  EXPECT_EQ(rates.generated, 5);
  EXPECT_DOUBLE_EQ(rates.generated_per_s(), 0.5);
  EXPECT_DOUBLE_EQ(rates.mean_context, 10 + (2 + 3 + 0 + 1 + 2) / 5.0);
  EXPECT_EQ(rates.prompt_computed, 32);
  EXPECT_DOUBLE_EQ(rates.mean_streams, (4 + 4 + 3 + 3 + 4) / 5.0);
  // Two seconds more than a step without prompts; a shorter step gives nothing back.
  ASSERT_TRUE(rates.prefill_share.has_value());
  EXPECT_DOUBLE_EQ(*rates.prefill_share, 0.2);
  EXPECT_DOUBLE_EQ(rates.decode_efficiency(1.0), 0.5 / 0.8);
}

TEST(SteadyRates, WaitsAreOfWhatWasSentInTheWindow) {
  const std::vector<LoadReply> replies = {Reply(0, 0, {9, 11}), Reply(1, 10, {11, 12}),
                                          Reply(2, 12, {16, 17}), Reply(3, 20, {29})};
  const SteadyRates rates = RatesIn({.from_s = 10, .to_s = 20}, replies, {});
  EXPECT_EQ(rates.first_token_s.count, 2);
  EXPECT_DOUBLE_EQ(rates.first_token_s.mean, 2.5);
}

TEST(SteadyRates, DoesNotGuessWhereEveryStepHasPrompts) {
  const std::vector<MeteredStep> steps = {
      {.start_s = 1, .run_s = 3, .tokens = 33, .sequences = 4, .prompt_tokens = 30, .prompts = 1}};
  const SteadyRates rates = RatesIn({.from_s = 0, .to_s = 10}, {Reply(0, 0, {1, 2})}, steps);
  EXPECT_FALSE(rates.prefill_share.has_value());
  EXPECT_DOUBLE_EQ(rates.decode_efficiency(0.4), 0.5) << "then nothing is set off";
}

}  // namespace
}  // namespace hearth
