// SPDX-License-Identifier: Apache-2.0
#include "plan/headline.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

void Set(CaseTime& time, StepPhase phase, double seconds, double bytes) {
  time.seconds[static_cast<size_t>(phase)] = seconds;
  time.work[phase] = {bytes, 0};
}

// 2.4 GB per token, read at 80 % of 30 GB/s in 100 ms; 2 ms of the rest; two steps.
ModelTimes Times() {
  ModelTimes times;
  times.stream_here = 30e9;
  times.int8_here = 1e12;
  CaseTime time{{BenchKind::kDecode, 1, 0, 2}, {}, {}};
  Set(time, StepPhase::kFeedForward, 0.15, 3.6e9);
  Set(time, StepPhase::kHead, 0.05, 1.2e9);
  Set(time, StepPhase::kSmall, 0.003, 0);
  Set(time, StepPhase::kAttention, 0.001, 1e6);
  times.decode = {time};
  return times;
}

TEST(Headline, SolvesForTheBandwidth) {
  const ModelTimes here = Times();
  const MachineRates rates{.stream = 30e9, .int8 = 1e12, .threads = 2};
  const Headline plain = HeadlineOf(here, here, rates, {2, 3e-8}, 145);
  EXPECT_DOUBLE_EQ(plain.bytes, 2.4e9);
  EXPECT_NEAR(plain.read_share, 0.8, 1e-12);
  EXPECT_NEAR(plain.serial_s, 0.002, 1e-12);
  EXPECT_DOUBLE_EQ(plain.loops_s, 0) << "what was measured holds them";
  EXPECT_NEAR(plain.rate, 1 / 0.102, 1e-9);
  EXPECT_NEAR(plain.serial_share, 0.002 / 0.102, 1e-9);
  // With that bandwidth a step takes a thirtieth of a second.
  EXPECT_NEAR(plain.bytes / (0.8 * plain.least_stream) + 0.002, 1.0 / 30, 1e-12);
}

TEST(Headline, MoreCoresCostLoopEnds) {
  const ModelTimes here = Times();
  const MachineRates rates{.stream = 30e9, .int8 = 1e12, .threads = 16};
  const LoopCost loop{.threads = 2, .look_seconds = 3e-8};
  const Headline many = HeadlineOf(here, here, rates, loop, 145);
  EXPECT_NEAR(many.loops_s, 145 * 3e-8 * 14, 1e-12);
  const Headline few = HeadlineOf(here, here, {30e9, 1e12, 2}, loop, 145);
  EXPECT_GT(many.least_stream, few.least_stream);
  // Fewer threads than here save nothing that is known.
  EXPECT_DOUBLE_EQ(HeadlineOf(here, here, {30e9, 1e12, 1}, loop, 145).loops_s, 0);
}

TEST(Headline, SaysWhenBandwidthIsNotEnough) {
  ModelTimes slow = Times();
  slow.decode[0].seconds[static_cast<size_t>(StepPhase::kSmall)] = 0.2;
  const Headline headline = HeadlineOf(slow, slow, {30e9, 1e12, 2}, {2, 3e-8}, 145);
  EXPECT_EQ(headline.least_stream, 0);
  EXPECT_NE(HeadlineText(headline).find("cannot be reached"), std::string::npos);
}

TEST(Headline, LoopsFollowTheLayers) {
  EXPECT_EQ(LoopsPerStep(24, 32), 217);
  EXPECT_EQ(LoopsPerStep(16, 0), 97);
}

}  // namespace
}  // namespace hearth
