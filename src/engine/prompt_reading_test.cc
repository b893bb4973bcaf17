// SPDX-License-Identifier: Apache-2.0
// What is asked of every position of a prompt, through the loop on a fake backend.
#include "engine/prompt_reading.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::Client;
using testing::EngineRig;
using testing::FakeOptions;

struct PromptListener : testing::Listener {
  void OnPromptLogprobs(int first, std::span<const Logprobs> logprobs) override {
    EXPECT_EQ(first, static_cast<int>(prompt.size()) + 1) << "a piece was lost or came twice";
    EXPECT_TRUE(tokens.empty()) << "a token before the prompt was read";
    prompt.insert(prompt.end(), logprobs.begin(), logprobs.end());
    ++num_pieces;
  }
  std::vector<Logprobs> prompt;
  int num_pieces = 0;
};

struct Reader {
  Request request;
  std::shared_ptr<PromptListener> heard = std::make_shared<PromptListener>();
  Admission admission;
};

Reader Submit(EngineRig& rig, Request request) {
  Reader reader;
  reader.request = request;
  reader.admission = rig.core.Submit(std::move(request), reader.heard);
  return reader;
}

Request Scored(const EngineRig& rig, int prompt_tokens, int max_tokens, int num_top) {
  Request request = rig.MakeRequest(prompt_tokens, max_tokens);
  request.sampling.num_prompt_logprobs = num_top;
  return request;
}

// In double, from the backend's definition.
void ExpectRight(const EngineRig& rig, const Reader& reader) {
  const std::vector<Token>& prompt = reader.request.prompt;
  const std::vector<Logprobs>& heard = reader.heard->prompt;
  ASSERT_EQ(heard.size(), prompt.size() - 1);
  for (size_t i = 1; i < prompt.size(); ++i) {
    const std::vector<float> logits = rig.backend.LogitsAfter(std::span(prompt).first(i));
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    const auto logprob = [&](Token token) {
      return static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(total);
    };
    const Logprobs& told = heard[i - 1];
    EXPECT_EQ(told.chosen.token, prompt[i]) << i;
    EXPECT_NEAR(static_cast<double>(told.chosen.logprob), logprob(prompt[i]), 1e-6) << i;
    std::vector<float> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const auto own = logits[static_cast<size_t>(prompt[i])];
    EXPECT_EQ(sorted[static_cast<size_t>(told.rank) - 1], own) << i;
    const int num_top = reader.request.sampling.num_prompt_logprobs;
    ASSERT_EQ(static_cast<int>(told.top.size()), num_top);
    for (size_t j = 0; j < told.top.size(); ++j) {
      const Token token = told.top[j].token;
      EXPECT_EQ(logits[static_cast<size_t>(token)], sorted[j]) << i;
      EXPECT_NEAR(static_cast<double>(told.top[j].logprob), logprob(token), 1e-6) << i;
    }
  }
}

TEST(PromptReading, EveryTokenOfAPromptIsScoredInFewRowsAtATime) {
  int most_rows = 0;
  FakeOptions fake;
  fake.before_run = [&](const StepPlan& plan) {
    most_rows = std::max(most_rows, plan.num_rows);
    return Status();
  };
  EngineRig rig(fake);
  const Reader a = Submit(rig, Scored(rig, 300, 5, 20));
  const Reader b = Submit(rig, Scored(rig, 301, 5, 0));
  const Client beside = rig.Submit(200, 20, 9);
  rig.Finish();
  ExpectRight(rig, a);
  ExpectRight(rig, b);
  EXPECT_GE(a.heard->num_pieces, 300 / kMaxScoredRows);
  EXPECT_LE(most_rows, kMaxScoredRows + 2);  // and the neighbours' own
  EXPECT_EQ(a.heard->tokens.size(), 5u);
  rig.ExpectRight(beside);
  rig.ExpectNothingHeld();
}

TEST(PromptReading, AnyCuttingGivesTheSameBits) {
  std::vector<Logprobs> whole;
  for (const int chunk : {2048, 33, 16, 7, 1}) {
    EngineOptions options;
    options.scheduler.max_step_tokens = chunk;
    options.scheduler.min_chunk = 1;
    EngineRig rig({}, options);
    const Reader reader = Submit(rig, Scored(rig, 130, 3, 20));
    rig.Finish();
    ExpectRight(rig, reader);
    if (whole.empty()) whole = reader.heard->prompt;
    ASSERT_EQ(whole.size(), reader.heard->prompt.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      const Logprobs &a = whole[i], &b = reader.heard->prompt[i];
      EXPECT_EQ(a.chosen.logprob, b.chosen.logprob);
      for (size_t j = 0; j < a.top.size(); ++j) EXPECT_EQ(a.top[j].logprob, b.top[j].logprob);
    }
  }
}

TEST(PromptReading, TheCacheIsNotUsedButFilled) {
  EngineRig rig;
  const Client plain = rig.Submit(100, 4);
  rig.Finish();
  const Reader reader = Submit(rig, Scored(rig, 100, 4, 2));
  rig.Finish();
  ExpectRight(rig, reader);
  EXPECT_EQ(reader.heard->tokens, plain.heard->tokens);
  EXPECT_EQ(reader.heard->record->num_cached, 0);
  EXPECT_EQ(reader.heard->record->miss.why, KvMiss::Why::kNotWanted);
  const Reader fresh = Submit(rig, Scored(rig, 200, 4, 2));
  rig.Finish();
  const Client after = rig.Submit(200, 4);
  rig.Finish();
  EXPECT_GE(after.heard->record->num_cached, 192);
  EXPECT_EQ(after.heard->tokens, fresh.heard->tokens);
}

TEST(PromptReading, SteppingBackTellsNothingTwice) {
  FakeOptions fake;
  fake.full_blocks = fake.window_blocks = 24;
  EngineOptions options;
  options.scheduler.headroom_blocks = 0;
  options.scheduler.max_step_tokens = 40;
  EngineRig rig(fake, options);
  std::vector<Reader> readers;
  for (int i = 0; i < 12; ++i) {
    Request request = rig.MakeRequest(40 + 9 * i, 60, static_cast<uint64_t>(i));
    request.sampling.num_prompt_logprobs = i % 4;
    request.priority = static_cast<Priority>(i % kNumPriorities);
    readers.push_back(Submit(rig, request));
    for (int steps = 0; steps < 3; ++steps) rig.core.Step();
  }
  rig.Finish();
  int num_preempted = 0;
  for (const Reader& reader : readers) {
    ASSERT_EQ(reader.heard->finish(), Finish::kLength) << reader.heard->record->detail;
    ExpectRight(rig, reader);
    EXPECT_EQ(reader.heard->tokens, rig.Expected(reader.request));
    num_preempted += reader.heard->record->num_preempted;
  }
  EXPECT_GT(num_preempted, 3);
  rig.ExpectNothingHeld();
}

TEST(PromptReading, APromptAloneSaysNothing) {
  EngineRig rig;
  Request request = Scored(rig, 70, 0, 3);
  request.prompt_only = true;
  const Reader reader = Submit(rig, request);
  request.prompt.resize(1);
  const Reader shortest = Submit(rig, request);
  rig.Finish();
  ExpectRight(rig, reader);
  EXPECT_EQ(reader.heard->finish(), Finish::kLength);
  EXPECT_TRUE(reader.heard->tokens.empty());
  EXPECT_EQ(reader.heard->record->num_generated, 0);
  EXPECT_EQ(shortest.heard->finish(), Finish::kLength);
  EXPECT_TRUE(shortest.heard->prompt.empty());
  rig.ExpectNothingHeld();
}

TEST(PromptReading, NumbersThatAreNoneEndTheOneThatMetThem) {
  FakeOptions fake;
  fake.nan_token = 5;
  EngineRig rig(fake);
  Request bad = Scored(rig, 90, 3, 1), good = bad;
  std::replace(bad.prompt.begin(), bad.prompt.end(), 5, 6);
  good.prompt = bad.prompt;
  bad.prompt[50] = 5;
  const Reader failed = Submit(rig, bad), right = Submit(rig, good);
  rig.Finish();
  EXPECT_EQ(failed.heard->finish(), Finish::kError);
  EXPECT_EQ(failed.heard->record->detail, "numerical_error");
  ExpectRight(rig, right);
}

TEST(PromptReading, ABackendThatCannotPoolRefuses) {
  EngineRig rig;
  Request request = rig.MakeRequest(10, 0);
  request.prompt_only = request.pools = true;
  EXPECT_EQ(Submit(rig, request).admission.status.code(), Code::kUnsupported);
}

TEST(PromptReading, AnEmbeddingHasLengthOneWhateverItsSize) {
  for (const double scale : {1.0, 1e-200, 1e200}) {
    const std::vector<double> sum = {3 * scale, 0, -4 * scale};
    const std::vector<float> embedding = Embedding(sum);
    ASSERT_EQ(embedding.size(), 3u);
    EXPECT_FLOAT_EQ(embedding[0], 0.6f);
    EXPECT_EQ(embedding[1], 0.0f);
    EXPECT_FLOAT_EQ(embedding[2], -0.8f);
  }
  EXPECT_EQ(Embedding(std::vector<double>(2, 0.0)), std::vector<float>(2, 0.0f));
}

}  // namespace
}  // namespace hearth
