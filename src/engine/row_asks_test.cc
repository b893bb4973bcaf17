// SPDX-License-Identifier: Apache-2.0
#include "engine/row_asks.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/clock.h"
#include "engine/engine_core.h"
#include "testing/engine_rig.h"
#include "testing/fake_backend.h"

namespace hearth {
namespace {

// Says what it can do beside logits, and counts what it was asked for.
class AskedBackend : public testing::FakeBackend {
 public:
  AskedBackend(BackendCapabilities can, testing::FakeOptions options)
      : FakeBackend(std::move(options)), can_(can) {}
  BackendCapabilities capabilities() const override { return can_; }
  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    for (int row = 0; row < plan.num_rows; ++row) ++asked[static_cast<int>(plan.AskOf(row).kind)];
    return FakeBackend::Compute(plan, logits);
  }
  int asked[3] = {};

 private:
  const BackendCapabilities can_;
};

std::vector<std::vector<Token>> Answers(const BackendCapabilities& can, int (&asked)[3]) {
  AskedBackend backend(can, {});
  VirtualClock clock;
  EngineCore core(backend, {}, clock);
  std::vector<std::shared_ptr<testing::Listener>> sinks;
  for (int i = 0; i < 24; ++i) {
    Request request;
    for (int k = 0; k < 5 + i; ++k) {
      request.prompt.push_back(testing::FakeBackend::RandomToken(static_cast<uint64_t>(i), k, 64));
    }
    request.max_tokens = 12;
    SamplingParams& params = request.sampling;
    params.seed = static_cast<uint64_t>(i);
    params.temperature = i % 3 == 0 ? 0.0f : 0.8f;
    params.top_k = i % 3 == 1 ? 1 + i : 0;
    if (i % 4 == 3) params.repetition_penalty = 1.2f;
    if (i % 8 == 5) params.num_logprobs = 2;
    sinks.push_back(std::make_shared<testing::Listener>());
    EXPECT_TRUE(core.Submit(request, sinks.back()).ok());
  }
  while (core.Step() || !core.is_idle()) clock.Advance(100);
  std::copy(std::begin(backend.asked), std::end(backend.asked), asked);
  std::vector<std::vector<Token>> answers;
  for (const auto& sink : sinks) {
    EXPECT_EQ(sink->finish(), Finish::kLength);
    answers.push_back(sink->tokens);
  }
  return answers;
}

TEST(RowAsks, WhatIsAskedForChangesNoToken) {
  int asked[3];
  const auto all = Answers({}, asked);
  EXPECT_EQ(asked[1] + asked[2], 0);
  EXPECT_EQ(Answers({.max_top = 64}, asked), all);
  EXPECT_GT(asked[1], 0);
  EXPECT_GT(asked[0], 0) << "penalties and whole distributions need every logit";
  EXPECT_EQ(Answers({.max_top = 8, .chooses_tokens = true}, asked), all);
  EXPECT_GT(asked[2], 0);
  EXPECT_GT(asked[1], 0);
  EXPECT_EQ(Answers({.preferred_tokens = 8}, asked), all);
}

TEST(RowAsks, ARowThatIsNoNumberFailsItsRequestWhateverWasAsked) {
  for (const BackendCapabilities can :
       {BackendCapabilities{}, {.max_top = 64}, {.chooses_tokens = true}}) {
    AskedBackend backend(can, {.nan_token = 63});
    VirtualClock clock;
    EngineCore core(backend, {}, clock);
    Request request;
    request.prompt = {1, 2, 63};
    request.max_tokens = 4;
    request.sampling.temperature = 0;
    auto sink = std::make_shared<testing::Listener>();
    ASSERT_TRUE(core.Submit(request, sink).ok());
    while (core.Step() || !core.is_idle()) clock.Advance(100);
    EXPECT_EQ(sink->finish(), Finish::kError);
    EXPECT_TRUE(sink->tokens.empty());
  }
}

}  // namespace
}  // namespace hearth
