// SPDX-License-Identifier: Apache-2.0
// Requests that are run alone first and then among random neighbours, with prefix hits, preemption,
// cancels and any cutting into chunks: what they hear must be the same.
#pragma once
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bits_rig.h"
namespace hearth::testing {

class BitsTest {
 public:
  BitsTest(const std::string& path, uint32_t seed, int max_prompt, int max_tokens)
      : random_(seed),
        max_prompt_(max_prompt),
        max_tokens_(max_tokens),
        model_(LoadedModel(path)) {}
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  // Every third request may say only what one of these allows.
  using NewMask = std::function<std::shared_ptr<TokenMask>()>;
  void UseMasks(std::vector<NewMask> masks) { masks_ = std::move(masks); }
  // Every other prompt says a phrase several times and favours its tokens, so that drafts are made.
  void RepeatPhrases() { repeats_ = true; }

  // Requests that share beginnings, so that hits of every length occur, each run alone first: on an
  // engine whose cache is empty, in whatever chunks it chooses.
  void Define(int count) {
    Machine alone(model_, {64, 64, 2048, 1});
    for (int i = 0; i < count; ++i) {
      Case c;
      if (!cases_.empty() && Pick(3) != 0) {
        const Case& other = cases_[static_cast<size_t>(Pick(static_cast<int>(cases_.size())))];
        c.request.prompt = other.request.prompt;
        if (Pick(2) == 0) {  // a second turn
          c.request.prompt.insert(c.request.prompt.end(), other.heard->tokens.begin(),
                                  other.heard->tokens.end());
        }
        const int cut = 1 + Pick(static_cast<int>(c.request.prompt.size()));
        c.request.prompt.resize(static_cast<size_t>(cut));
      }
      const auto length = static_cast<size_t>(1 + Pick(max_prompt_));
      c.request.prompt.resize(std::min(c.request.prompt.size(), static_cast<size_t>(max_prompt_)));
      while (c.request.prompt.size() < length) {
        c.request.prompt.push_back(Pick(model_.spec.vocab_size));
      }
      c.request.max_tokens = 1 + Pick(max_tokens_);
      if (repeats_ && Pick(2) == 0) Repeat(c.request);
      c.request.sampling.temperature = Pick(2) == 0 ? 0.0f : 0.8f;
      c.request.sampling.top_p = Pick(2) == 0 ? 1.0f : 0.9f;
      c.request.sampling.repetition_penalty = Pick(4) == 0 ? 1.2f : 1.0f;
      c.request.sampling.seed = random_();
      c.request.domain = {1, static_cast<uint64_t>(i + 1)};  // a salt of its own: never a hit
      const bool is_masked = !masks_.empty() && Pick(3) == 0;
      mask_of_.push_back(is_masked ? 1 + Pick(static_cast<int>(masks_.size())) : 0);
      c.request.mask = MaskFor(cases_.size());
      alone.Submit(c);
      alone.Finish();
      c.request.mask = nullptr;  // it has heard this reply
      if (!is_masked) {
        EXPECT_EQ(c.heard->record.finish, Finish::kLength);
      }
      EXPECT_EQ(c.heard->record.num_cached, 0);
      EXPECT_EQ(c.heard->record.num_preempted, 0);
      c.request.domain = {};
      cases_.push_back(c);
    }
  }

  // One engine, many requests in random order, some cancelled; every other one is compared.
  int Compare(int count, const World& world) {
    Machine machine(model_, world);
    std::vector<std::pair<const Case*, Case>> runs;
    std::vector<SeqId> doomed;
    int compared = 0;
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<size_t>(Pick(static_cast<int>(cases_.size())));
      const Case& expected = cases_[number];
      Case c;
      c.request = expected.request;
      c.request.mask = MaskFor(number);
      c.request.domain.tenant = static_cast<uint32_t>(Pick(3));
      c.request.priority = static_cast<Priority>(Pick(kNumPriorities));
      const SeqId id = machine.Submit(c);
      if (Pick(10) == 0) {
        doomed.push_back(id);
      } else {
        runs.emplace_back(&expected, c);
      }
      for (int steps = Pick(3); steps > 0; --steps) machine.Step();
      if (!doomed.empty() && Pick(2) == 0) {
        machine.core().Cancel(doomed.back());
        doomed.pop_back();
      }
      if (machine.core().scheduler().load().num_waiting > 16) {
        for (int steps = 0; steps < 8; ++steps) machine.Step();
      }
    }
    machine.Finish();
    for (const auto& [expected, run] : runs) {
      EXPECT_EQ(run.heard->record.finish, expected->heard->record.finish)
          << run.heard->record.detail;
      EXPECT_EQ(run.heard->tokens, expected->heard->tokens);
      EXPECT_EQ(run.heard->rows, expected->heard->rows);
      ++compared;
      num_hits_ += run.heard->record.num_cached > 0 ? 1 : 0;
      num_partial_ +=
          run.heard->record.num_cached > 0 && run.heard->record.miss.why != KvMiss::Why::kNone ? 1
                                                                                               : 0;
      num_preempted_ += run.heard->record.num_preempted > 0 ? 1 : 0;
      num_drafted_ += run.heard->record.num_drafted > 0 ? 1 : 0;
      num_accepted_ += run.heard->record.num_accepted;
      num_masked_ += run.request.mask != nullptr ? 1 : 0;
      if (::testing::Test::HasFailure()) return compared;
    }
    num_breaks_ += machine.core().scheduler().totals().num_breaks;
    for (int group = 0; group < machine.core().kv().layout().num_groups(); ++group) {
      EXPECT_EQ(machine.core().kv().counts(group).held, 0);
    }
    return compared;
  }

  int vocab_size() const { return model_.spec.vocab_size; }
  int num_hits() const { return num_hits_; }
  int num_preempted() const { return num_preempted_; }
  int num_drafted() const { return num_drafted_; }
  int64_t num_breaks() const { return num_breaks_; }
  int num_masked() const { return num_masked_; }
  void Tell(const char* name, int compared) const {
    std::printf(
        "%s: %d requests as alone, %d of them with prefix hits, %d partial, %d preempted; %lld "
        "steps "
        "in breaks of others\n",
        name, compared, num_hits_, num_partial_, num_preempted_,
        static_cast<long long>(num_breaks_));
    if (masks_.empty()) return;
    std::printf("  %d with a grammar, %d with drafts, of which %lld tokens were accepted\n",
                num_masked_, num_drafted_, static_cast<long long>(num_accepted_));
  }

 private:
  std::shared_ptr<TokenMask> MaskFor(size_t number) const {
    const int mask = mask_of_[number];
    return mask == 0 ? nullptr : masks_[static_cast<size_t>(mask) - 1]();
  }
  void Repeat(Request& request) {
    std::vector<Token> phrase(static_cast<size_t>(2 + Pick(4)));
    for (Token& token : phrase) token = Pick(model_.spec.vocab_size);
    for (size_t i = 0; i < request.prompt.size(); ++i) {
      request.prompt[i] = phrase[i % phrase.size()];
    }
    for (const Token token : phrase) request.sampling.logit_bias.push_back({token, 12.0f});
  }

  std::mt19937 random_;
  int max_prompt_, max_tokens_;
  std::vector<NewMask> masks_;
  std::vector<int> mask_of_;  // by case; 0: none
  bool repeats_ = false;
  Model model_;
  std::deque<Case> cases_;
  int num_hits_ = 0, num_partial_ = 0, num_preempted_ = 0, num_drafted_ = 0, num_masked_ = 0;
  int64_t num_accepted_ = 0, num_breaks_ = 0;
};

// Pools from ample to so small that most are preempted; steps from long to a few tokens.
inline World AnyWorld(BitsTest& test, int ample) {
  World world;
  const int kinds[] = {ample, ample / 3, ample / 6};
  world.full_blocks = kinds[test.Pick(3)];
  world.window_blocks = world.full_blocks;
  const int steps[] = {2048, 64, 33, 16};
  world.max_step_tokens = steps[test.Pick(4)];
  world.max_sequences = 1 + test.Pick(64);
  return world;
}

}  // namespace hearth::testing
