// SPDX-License-Identifier: Apache-2.0
#include "engine/step_sampler.h"

#include <gtest/gtest.h>

#include <limits>

namespace hearth {
namespace {

constexpr int kVocab = 8;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Sequences of a prompt of four tokens, sampled greedily: row r's likeliest token is what the test
// says.
class StepSamplerTest : public ::testing::Test {
 protected:
  Sequence& Add(int count, Token answer) {
    auto s = std::make_unique<Sequence>();
    s->id = static_cast<SeqId>(all_.size() + 1);
    s->tokens = {1, 2, 3, 4};
    s->num_prompt = 4;
    s->request.sampling.temperature = 0;
    s->past.emplace(s->request.sampling, s->tokens);
    SeqSlice slice;
    slice.seq = s->id;
    slice.count = count;
    slice.first_row = plan_.num_rows++;
    slice.num_rows = 1;
    plan_.slices.push_back(slice);
    logits_.resize(logits_.size() + kVocab, answer < 0 ? kNan : 0.0f);
    if (answer >= 0) logits_[logits_.size() - kVocab + static_cast<size_t>(answer)] = 5;
    planned_.push_back(s.get());
    all_.push_back(std::move(s));
    return *all_.back();
  }

  std::span<const SliceOutcome> Sample(StepSampler& sampler) {
    masks_.Begin(plan_, planned_);
    masks_.End();
    rows_.clear();
    for (size_t i = 0; i < static_cast<size_t>(plan_.num_rows); ++i) {
      rows_.push_back({.logits = std::span(logits_).subspan(i * kVocab, kVocab)});
    }
    return sampler.Sample(plan_, planned_, rows_, masks_);
  }

  VirtualClock clock_;
  MaskFills masks_{kVocab, clock_, nullptr};
  StepPlan plan_;
  std::vector<float> logits_;
  std::vector<RowResult> rows_;
  std::vector<Sequence*> planned_;
  std::vector<std::unique_ptr<Sequence>> all_;
};

TEST_F(StepSamplerTest, OnlySlicesThatReachTheirEndSpeak) {
  Sequence& speaks = Add(4, 6);
  Sequence& silent = Add(3, 6);
  StepSampler sampler(kVocab, nullptr);
  const auto outcomes = Sample(sampler);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].tokens, std::vector<Token>{6});
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_FALSE(outcomes[0].stops);
  EXPECT_EQ(speaks.past->num_generated(), 1u);
  EXPECT_TRUE(outcomes[1].tokens.empty());
  EXPECT_EQ(outcomes[1].error, "");
  EXPECT_EQ(silent.past->num_generated(), 0u);
}

TEST_F(StepSamplerTest, ARowWithoutNumbersIsItsOwnSlicesErrorAlone) {
  Add(4, -1);
  Add(2, -1);
  Add(4, 3);
  StepSampler sampler(kVocab, nullptr);
  for (int round = 0; round < 2; ++round) {  // nothing is left of the round before
    const auto outcomes = Sample(sampler);
    EXPECT_EQ(outcomes[0].error, "numerical_error");
    EXPECT_EQ(outcomes[1].error, "numerical_error");
    EXPECT_EQ(outcomes[2].error, "");
    EXPECT_TRUE(outcomes[0].tokens.empty());
    EXPECT_EQ(outcomes[2].tokens, std::vector<Token>{3});
  }
}

TEST_F(StepSamplerTest, StopTokensStop) {
  Add(4, 5).request.sampling.stop_tokens = {5};
  Add(4, 4).request.sampling.stop_tokens = {5};
  std::vector<int> seen;
  StepSampler sampler(kVocab, [&](SeqId id, int index, std::span<const float> row) {
    EXPECT_EQ(row.size(), static_cast<size_t>(kVocab));
    EXPECT_EQ(index, 0);
    seen.push_back(static_cast<int>(id));
  });
  const auto outcomes = Sample(sampler);
  EXPECT_TRUE(outcomes[0].stops);
  EXPECT_FALSE(outcomes[1].stops);
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace hearth
