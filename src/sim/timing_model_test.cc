// SPDX-License-Identifier: Apache-2.0
#include "sim/timing_model.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(TimingModel, IsLinearBetweenItsPointsAndBeyondTheLast) {
  const TimingModel model({{1, 100}, {3, 200}, {11, 1000}}, 0.5);
  EXPECT_DOUBLE_EQ(model.StepUs(1, 0), 100);
  EXPECT_DOUBLE_EQ(model.StepUs(2, 0), 150);
  EXPECT_DOUBLE_EQ(model.StepUs(3, 10), 205);
  EXPECT_DOUBLE_EQ(model.StepUs(7, 0), 600);
  EXPECT_DOUBLE_EQ(model.StepUs(21, 0), 2000);
}

TEST(TimingModel, CountsThePositionsATokenLooksAt) {
  SeqSlice slice;
  slice.num_computed = 10;
  slice.count = 1;
  EXPECT_EQ(PositionsOf(slice), 11);
  slice.count = 3;
  EXPECT_EQ(PositionsOf(slice), 11 + 12 + 13);
  StepPlan plan;
  plan.tokens.resize(3);
  plan.slices.push_back(slice);
  const TimingModel model({{1, 100}, {2, 110}}, 1);
  EXPECT_DOUBLE_EQ(model.StepUs(plan), 120 + 36);
  EXPECT_DOUBLE_EQ(model.WithPromptPositions(0.5).StepUs(plan), 120 + 18);
  EXPECT_DOUBLE_EQ(model.WithPromptPositions(0.5).Times(2).StepUs(plan), 240 + 36);
  slice.count = 1;
  plan.slices.push_back(slice);
  plan.tokens.resize(4);
  EXPECT_DOUBLE_EQ(model.WithPromptPositions(0.5).StepUs(plan), 130 + 18 + 11);
}

constexpr const char* kBench = R"({"chunk": 256, "measurements": [
  {"kind": "decode", "sequences": 1, "depth": 0, "tokens": 16, "steps": 16, "seconds": 1.6},
  {"kind": "decode", "sequences": 8, "depth": 0, "tokens": 128, "steps": 16, "seconds": 3.2},
  {"kind": "decode", "sequences": 1, "depth": 1000, "tokens": 16, "steps": 16, "seconds": 1.76},
  {"kind": "prefill", "sequences": 1, "depth": 0, "tokens": 512, "steps": 1, "seconds": 4.0}]})";

TEST(TimingModel, IsCalibratedByABenchmarksFile) {
  Result<Json> json = ParseJson(kBench);
  ASSERT_TRUE(json.ok());
  Result<TimingModel> model = TimingModel::FromBench(*json);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NEAR(model->StepUs(1, 0), 100'000, 1e-6);
  EXPECT_NEAR(model->StepUs(8, 0), 200'000, 1e-6);
  EXPECT_NEAR(model->us_per_position(), 10, 1e-9);  // 10 ms more for 1,000 positions
  // Two steps of 256 tokens that look at 131,328 positions.
  EXPECT_NEAR(model->StepUs(256, 0), (4e6 - 1'313'280) / 2, 1e-3);
}

TEST(TimingModel, PhasesSayWhatPromptsTakeToLookBack) {
  std::string text = kBench;
  text.replace(text.find("\"seconds\": 4.0"), 14, R"("seconds": 4.0, "profile": {"phases": [
      {"name": "projections", "seconds": 1.5}, {"name": "attention", "seconds": 0.5}]})");
  Result<Json> json = ParseJson(text);
  ASSERT_TRUE(json.ok());
  Result<TimingModel> model = TimingModel::FromBench(*json);
  ASSERT_TRUE(model.ok()) << model.status().message();
  // A quarter of four seconds, for 131,328 positions; without phases it is 10 us each.
  EXPECT_NEAR(model->StepUs(256, 0), 1.5e6, 1e-3);
  EXPECT_NEAR(model->StepUs({.tokens = 256, .prompt_positions = 131'328}), 2.5e6, 1e-3);
  EXPECT_NEAR(model->StepUs(256, 100), 1.5e6 + 1000, 1e-3);
}

TEST(TimingModel, PhasesSayWhatTheHeadTakes) {
  Result<Json> json = ParseJson(R"({"chunk": 512, "measurements": [
    {"kind": "decode", "sequences": 1, "depth": 0, "tokens": 16, "steps": 16, "seconds": 1.6,
     "profile": {"phases": [{"name": "small", "seconds": 3}, {"name": "head", "seconds": 1}]}},
    {"kind": "decode", "sequences": 8, "depth": 0, "tokens": 128, "steps": 16, "seconds": 3.2,
     "profile": {"phases": [{"name": "small", "seconds": 1}, {"name": "head", "seconds": 1}]}},
    {"kind": "prefill", "sequences": 1, "depth": 0, "tokens": 512, "steps": 1, "seconds": 4.0,
     "profile": {"phases": [{"name": "small", "seconds": 3}, {"name": "head", "seconds": 1}]}}]})");
  ASSERT_TRUE(json.ok());
  Result<TimingModel> model = TimingModel::FromBench(*json);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NEAR(model->StepUs(1, 0), 100'000, 1e-3);
  EXPECT_NEAR(model->StepUs(8, 0), 200'000, 1e-3);
  EXPECT_NEAR(model->StepUs({.tokens = 8, .rows = 1}), 125'000, 1e-3);
  EXPECT_NEAR(model->StepUs({.tokens = 512}), 3e6, 1e-3);
}

TEST(TimingModel, RefusesWhatIsNoBenchmark) {
  for (const char* text :
       {"{}", R"({"measurements": 3, "chunk": 1})", R"({"measurements": [], "chunk": 1})",
        R"({"measurements": [{"kind": "dance"}], "chunk": 1})",
        R"({"measurements": [{"kind": "decode", "sequences": 1, "depth": 0, "tokens": 1,
            "steps": 0, "seconds": 1}], "chunk": 1})",
        R"({"measurements": [{"kind": "decode", "sequences": 1, "depth": 0, "tokens": 1,
            "steps": 1, "seconds": -1}], "chunk": 1})"}) {
    Result<Json> json = ParseJson(text);
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(TimingModel::FromBench(*json).status().code(), Code::kInvalid) << text;
  }
}

TEST(TimingModel, TheBuiltInOneDecodesTenTokensASecond) {
  const TimingModel model = TimingModel::TwentyB();
  EXPECT_NEAR(1e6 / model.StepUs(1, 100), 9.8, 0.1);
  EXPECT_NEAR(512e6 / model.StepUs(512, 0), 150, 1);
}

TEST(TimingModel, AStepReadsTheExpertsThatItsTokensChoose) {
  const TimingModel model({{1, 100}, {101, 200}}, 0, {{32, 4}, 1000});
  EXPECT_DOUBLE_EQ(model.StepUs(1, 0), 100 + 125);
  EXPECT_DOUBLE_EQ(model.StepUs(2, 0), 101 + 1000 * (1 - 0.875 * 0.875));
  EXPECT_NEAR(model.StepUs(101, 0), 1200, 0.01);
  EXPECT_NEAR(model.Times(3).StepUs(51, 7), 3 * model.StepUs(51, 7), 1e-6);
}

}  // namespace
}  // namespace hearth
