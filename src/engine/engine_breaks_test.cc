// SPDX-License-Identifier: Apache-2.0
// Steps that are left between two layers for tenants that used less of the machine.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::Client;
using testing::EngineRig;
using testing::FakeOptions;

constexpr int kLayers = 10, kStepTokens = 256;
constexpr int64_t kLayerUs = 100;  // for every token of a step

// Tenant 1 has a long prompt; something happens in the middle of one of its steps.
class EngineBreaks : public ::testing::Test {
 protected:
  EngineBreaks() : rig_(Fake(), Options(), 0, 0) {}

  FakeOptions Fake() {
    FakeOptions fake;
    fake.full_blocks = fake.window_blocks = 512;
    fake.layers = kLayers;
    fake.in_layer = [this](const StepPlan& plan, int layer) {
      const bool is_crowds = plan.slices[0].seq == crowd_.admission.id;
      if (is_crowds && layer == 3 && in_third_layer_) std::exchange(in_third_layer_, nullptr)();
      rig_.clock.Advance(kLayerUs * static_cast<int64_t>(plan.tokens.size()));
    };
    return fake;
  }
  static EngineOptions Options() {
    EngineOptions options;
    options.scheduler.min_chunk = 8;
    options.scheduler.max_step_tokens = kStepTokens;
    options.scheduler.speculates = false;
    return options;
  }
  Client Ask(uint32_t tenant, int prompt, int answer, uint64_t seed) {
    Request request = rig_.MakeRequest(prompt, answer, seed);
    request.domain = {.tenant = tenant, .salt = tenant};
    return rig_.Submit(std::move(request));
  }
  // The long prompt has been read for a while, by a machine whose speed is known by now.
  void BeginCrowd(int prompt = 6000) {
    crowd_ = Ask(1, prompt, 4, 1);
    for (int i = 0; i < 6; ++i) rig_.core.Step();
  }
  int64_t num_breaks() const { return rig_.core.scheduler().totals().num_breaks; }

  Client crowd_, other_;
  std::function<void()> in_third_layer_;
  EngineRig rig_;
};

TEST_F(EngineBreaks, ANewcomerWaitsForOneLayer) {
  BeginCrowd();
  in_third_layer_ = [&] { other_ = Ask(2, 12, 1, 2); };
  rig_.core.Step();
  ASSERT_TRUE(other_.heard->record.has_value()) << "it was served within the other's step";
  EXPECT_EQ(num_breaks(), 1);
  const RequestRecord& record = *other_.heard->record;
  const int64_t own_us = 12 * kLayers * kLayerUs;
  const int64_t layer_us = kStepTokens * kLayerUs;
  EXPECT_LE(record.first_token_us - record.arrived_us, own_us + layer_us);
  EXPECT_FALSE(crowd_.heard->record.has_value());
  rig_.Finish();
  rig_.ExpectRight(crowd_);
  rig_.ExpectRight(other_);
  EXPECT_EQ(crowd_.heard->tokens.size(), 4u);
  rig_.ExpectNothingHeld();
}

// Who had the machine alone asks for little when others come, and does not wait until they have
// used as much: what leaves its step takes as long as the step itself, the last of it aside.
TEST_F(EngineBreaks, NewcomersTakeNoMoreThanTheStepTheyLeave) {
  BeginCrowd(6 * kStepTokens);
  rig_.Finish();
  crowd_ = Ask(1, 12, 1, 2);
  std::vector<Client> others;
  in_third_layer_ = [&] {
    for (uint64_t i = 0; i < 8; ++i) others.push_back(Ask(2, 2, 100, 10 + i));
  };
  while (!crowd_.heard->record.has_value()) rig_.core.Step();
  EXPECT_GT(num_breaks(), 0);
  constexpr int64_t kTokenUs = kLayers * kLayerUs;
  const int64_t own_us = 12 * kTokenUs, last_us = 8 * 2 * kTokenUs;
  const RequestRecord& record = *crowd_.heard->record;
  EXPECT_LE(record.first_token_us - record.arrived_us, 2 * own_us + last_us);
  rig_.Finish();
  for (const Client& other : others) rig_.ExpectRight(other);
}

// One's own requests wait in line: a step that is left for them would only make both later.
TEST_F(EngineBreaks, NobodyLeavesAStepForItsOwnRequests) {
  BeginCrowd();
  in_third_layer_ = [&] { other_ = Ask(1, 12, 1, 2); };
  rig_.Finish();
  EXPECT_EQ(num_breaks(), 0);
  rig_.ExpectRight(other_);
}

// Nor for those who are less urgent than what is under way.
TEST_F(EngineBreaks, NobodyLeavesAStepForTheLessUrgent) {
  BeginCrowd();
  in_third_layer_ = [&] {
    Request request = rig_.MakeRequest(12, 1, 2);
    request.domain = {.tenant = 2, .salt = 2};
    request.priority = Priority::kLow;
    other_ = rig_.Submit(std::move(request));
  };
  rig_.core.Step();
  EXPECT_EQ(num_breaks(), 0);
  rig_.Finish();
  rig_.ExpectRight(other_);
}

// Who asks again and again gets half of the machine and no more.
TEST_F(EngineBreaks, SharesAreOfTimeNotOfRequests) {
  BeginCrowd(8000);
  const int64_t since_us = rig_.clock.now_us();
  int64_t tokens = 0;
  uint64_t seed = 10;
  std::vector<Client> asked;
  other_ = Ask(2, 60, 1, ++seed);
  while (!crowd_.heard->record.has_value()) {
    rig_.core.Step();
    if (!other_.heard->record.has_value()) continue;
    rig_.ExpectRight(other_);
    tokens += 60;
    other_ = Ask(2, 60, 1, ++seed);
  }
  const auto own_us = static_cast<double>(tokens * kLayers * kLayerUs);
  const auto all_us = static_cast<double>(crowd_.heard->record->ended_us - since_us);
  EXPECT_GT(own_us, 0.25 * all_us);
  EXPECT_LT(own_us, 0.6 * all_us);
}

// What happens to a sequence while its step is left happens when the step is done.
TEST_F(EngineBreaks, ACancelInABreakWaitsForTheStep) {
  BeginCrowd();
  in_third_layer_ = [&] {
    other_ = Ask(2, 12, 1, 2);
    rig_.core.Cancel(crowd_.admission.id);
  };
  rig_.core.Step();
  ASSERT_TRUE(other_.heard->record.has_value());
  ASSERT_TRUE(crowd_.heard->record.has_value());
  EXPECT_EQ(crowd_.heard->finish(), Finish::kCancelled);
  EXPECT_EQ(other_.heard->finish(), Finish::kLength);
  EXPECT_TRUE(rig_.core.is_idle());
  rig_.ExpectNothingHeld();
}

TEST_F(EngineBreaks, AnExpiryInABreakWaitsForTheStep) {
  Request request = rig_.MakeRequest(6000, 4, 1);
  request.domain = {.tenant = 1, .salt = 1};
  request.timeout_us = 2'000'000;
  crowd_ = rig_.Submit(std::move(request));
  for (int i = 0; i < 20 && rig_.clock.now_us() < 1'000'000; ++i) rig_.core.Step();
  in_third_layer_ = [&] {
    rig_.clock.Advance(3'000'000);
    other_ = Ask(2, 12, 1, 2);
  };
  rig_.core.Step();
  EXPECT_EQ(num_breaks(), 1);
  EXPECT_EQ(crowd_.heard->finish(), Finish::kExpired);
  EXPECT_EQ(other_.heard->finish(), Finish::kLength);
  rig_.ExpectNothingHeld();
}

TEST_F(EngineBreaks, AFailureInABreakEndsNobodyElse) {
  BeginCrowd();
  rig_.backend.options().before_run = [&](const StepPlan& plan) {
    return plan.slices[0].seq == other_.admission.id ? Error(Code::kIo, "a fault") : Status();
  };
  in_third_layer_ = [&] { other_ = Ask(2, 12, 1, 2); };
  rig_.core.Step();
  EXPECT_EQ(other_.heard->finish(), Finish::kError);
  rig_.Finish();
  EXPECT_EQ(crowd_.heard->finish(), Finish::kLength);
  rig_.ExpectRight(crowd_);
  rig_.ExpectNothingHeld();
}

// Blocks of a step that was left are in use: a newcomer without room waits.
TEST_F(EngineBreaks, NobodyInALeftStepIsPreempted) {
  BeginCrowd(7000);
  in_third_layer_ = [&] { other_ = Ask(2, 5000, 1, 2); };
  rig_.core.Step();
  EXPECT_EQ(rig_.core.scheduler().totals().num_preemptions, 0);
  rig_.Finish();
  rig_.ExpectRight(crowd_);
  rig_.ExpectRight(other_);
  EXPECT_EQ(other_.heard->finish(), Finish::kLength);
}

}  // namespace
}  // namespace hearth
