// SPDX-License-Identifier: Apache-2.0
// The engine with a tier, one step at a time.
#include "engine/tier_traffic.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/clock.h"
#include "engine/engine_core.h"
#include "testing/engine_rig.h"
#include "testing/fake_backend.h"
#include "testing/memory_tier.h"

namespace hearth {
namespace {

std::vector<Token> Prompt(uint64_t seed, int size) {
  std::vector<Token> out;
  for (int i = 0; i < size; ++i) out.push_back(testing::FakeBackend::RandomToken(seed, i, 64));
  return out;
}

// Memory for one long prompt: the next one takes the blocks of the one before.
class TierTest : public ::testing::Test {
 protected:
  TierTest() {
    options_.scheduler.headroom_blocks = 0;
    options_.self_check_every = 1;
    Restart();
  }
  void Restart() {
    core_.reset();
    backend_ = std::make_unique<testing::FakeBackend>(
        testing::FakeOptions{.full_blocks = 12, .window_blocks = 12});
    core_ = std::make_unique<EngineCore>(*backend_, options_, clock_, nullptr, &tier_);
  }
  std::shared_ptr<testing::Listener> Ask(std::vector<Token> prompt) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = 2;
    request.sampling.temperature = 0;
    auto sink = std::make_shared<testing::Listener>();
    const Admission admission = core_->Submit(std::move(request), sink);
    EXPECT_TRUE(admission.ok()) << admission.status.message();
    last_ = admission.id;
    return sink;
  }
  void Play() {
    for (int i = 0; i < 1000 && (core_->Step() || !core_->is_idle()); ++i) clock_.Advance(1000);
    EXPECT_TRUE(core_->is_idle());
  }
  std::shared_ptr<testing::Listener> Answer(std::vector<Token> prompt) {
    auto sink = Ask(std::move(prompt));
    Play();
    return sink;
  }
  // Asks again in an engine without memory of it, while the tier is silent: it loads.
  std::shared_ptr<testing::Listener> AskWhileSilent(const std::vector<Token>& prompt) {
    Answer(prompt);
    Restart();
    tier_.answers = false;
    auto sink = Ask(prompt);
    core_->Step();
    EXPECT_EQ(counts().loading, 1);
    return sink;
  }
  TierCounts counts() const { return core_->traffic()->counts(); }

  EngineOptions options_;
  VirtualClock clock_;
  testing::MemoryTier tier_;
  std::unique_ptr<testing::FakeBackend> backend_;
  std::unique_ptr<EngineCore> core_;
  SeqId last_{};
};

TEST_F(TierTest, WhatMemoryLostComesBackFromTheTier) {
  const std::vector<Token> first = Prompt(1, 150), second = Prompt(2, 150);
  const auto computed = Answer(first);
  EXPECT_EQ(computed->record->num_cached, 0);
  EXPECT_GT(tier_.records.size(), 10u);
  Answer(second);
  const auto again = Answer(first);
  EXPECT_EQ(again->tokens, computed->tokens);
  EXPECT_EQ(again->record->num_cached, 144);
  EXPECT_GT(again->record->num_loaded, 0);
  EXPECT_EQ(counts().staged_bytes, 0);
  EXPECT_EQ(counts().num_loads_used, 1u);
}

// Its last token is computed in any case: a prompt of whole blocks starts one block earlier, and
// needs the window before that.
TEST_F(TierTest, APromptOfWholeBlocksIsFoundAgain) {
  const auto computed = Answer(Prompt(1, 160));
  Restart();
  const auto again = Answer(Prompt(1, 160));
  EXPECT_EQ(again->tokens, computed->tokens);
  EXPECT_EQ(again->record->num_loaded, 144);
}

TEST_F(TierTest, AFetchSaysWhoseItIs) {
  const auto ask = [&] {
    Request request;
    request.prompt = Prompt(1, 150);
    request.max_tokens = 1;
    request.domain.tenant = 5;
    EXPECT_TRUE(core_->Submit(std::move(request), std::make_shared<testing::Listener>()).ok());
    Play();
  };
  ask();
  Restart();
  ask();
  EXPECT_GT(tier_.num_fetches, 0);
  EXPECT_EQ(tier_.last_tenant, 5u);
}

// Damage that a tier says it looked for is the tier's to find; anything else is looked at here.
TEST_F(TierTest, WhatATierVerifiedIsNotSummedUpAgain) {
  for (const bool is_verified : {false, true}) {
    const std::vector<Token> prompt = Prompt(is_verified ? 8 : 9, 150);
    AskWhileSilent(prompt);
    tier_.answers = true;
    for (TierDone& done : std::exchange(tier_.waiting, {})) {
      std::vector<std::byte> damaged = done.record.Copy();
      if (!damaged.empty()) damaged.back() ^= std::byte{1};
      tier_.Answer({done.id, done.outcome, std::move(damaged), is_verified});
    }
    Play();
    EXPECT_EQ(counts().num_loads_used, is_verified ? 1u : 0u);
    Restart();
  }
}

TEST_F(TierTest, AnotherEngineWithTheSameSecretFindsIt) {
  const std::vector<Token> prompt = Prompt(1, 150);
  const auto computed = Answer(prompt);
  Restart();
  const auto again = Answer(prompt);
  EXPECT_EQ(again->tokens, computed->tokens);
  EXPECT_EQ(again->record->num_loaded, 144);
  options_.kv.key_seed = 77;  // another model, or another secret
  Restart();
  EXPECT_EQ(Answer(prompt)->record->num_cached, 0);
}

TEST_F(TierTest, ATierThatIsSilentCostsABoundedTime) {
  options_.tier.max_load_us = 50'000;
  Restart();
  const std::vector<Token> prompt = Prompt(1, 150);
  const auto computed = Answer(prompt);
  Restart();
  tier_.answers = false;
  const auto again = Ask(prompt);
  EXPECT_FALSE(core_->Step());
  EXPECT_EQ(counts().loading, 1);
  EXPECT_EQ(core_->scheduler().running().size(), 0u) << "it holds no place";
  EXPECT_EQ(core_->TakeSnapshot().rows.at(0).state, SequenceRow::State::kLoading);
  const int64_t since_us = clock_.now_us();
  Play();
  EXPECT_EQ(again->tokens, computed->tokens);
  EXPECT_EQ(again->record->num_cached, 0);
  EXPECT_GT(tier_.cancelled.size(), 0u);
  EXPECT_LT(again->record->started_us - since_us, 60'000);
  EXPECT_GE(again->record->loading_us, 49'000);
  tier_.AnswerAll();  // too late: nobody waits any more
  Play();
  EXPECT_EQ(counts().staged_bytes, 0);
}

TEST_F(TierTest, OthersRunWhileOneLoads) {
  const auto loading = AskWhileSilent(Prompt(1, 60));
  const auto other = Ask(Prompt(3, 20));
  for (int i = 0; i < 10; ++i) {
    core_->Step();
    clock_.Advance(1000);
  }
  EXPECT_EQ(other->record->finish, Finish::kLength);
  EXPECT_TRUE(loading->tokens.empty());
  tier_.AnswerAll();
  tier_.answers = true;
  Play();
  EXPECT_EQ(loading->record->num_loaded, 48);
}

// One at a time: the second is in line while the first is served.
TEST_F(TierTest, WhoIsInLineIsFetchedForMeanwhile) {
  options_.scheduler.max_sequences = 1;
  Restart();
  const std::vector<Token> first = Prompt(1, 60), second = Prompt(2, 60);
  const auto computed = Answer(second);
  Answer(first);
  Restart();
  tier_.answers = false;
  const auto one = Ask(Prompt(3, 20));
  const auto two = Ask(second);
  core_->Step();
  EXPECT_EQ(counts().ahead, 1);
  EXPECT_EQ(counts().loading, 0) << "nobody waits for it";
  EXPECT_GT(counts().ahead_bytes, 0);
  EXPECT_EQ(counts().staged_bytes, 0) << "it takes no room of those whose turn it is";
  tier_.AnswerAll();
  tier_.answers = true;
  Play();
  EXPECT_EQ(one->record->finish, Finish::kLength);
  EXPECT_EQ(two->tokens, computed->tokens);
  EXPECT_EQ(two->record->num_loaded, 48);
  EXPECT_EQ(two->record->loading_us, 0) << "it was there when its turn came";
  EXPECT_EQ(counts().num_ahead, 1u);
  EXPECT_EQ(counts().ahead_bytes, 0);
}

TEST_F(TierTest, WhoseTurnComesFirstWaitsForWhatIsOnItsWay) {
  options_.scheduler.max_sequences = 1;
  Restart();
  const std::vector<Token> prompt = Prompt(2, 60);
  const auto computed = Answer(prompt);
  Restart();
  tier_.answers = false;
  Ask(Prompt(3, 20));
  const auto sink = Ask(prompt);
  core_->Step();
  const int asked = tier_.num_fetches;
  for (int i = 0; i < 5; ++i) {
    core_->Step();
    clock_.Advance(1000);
  }
  EXPECT_EQ(core_->TakeSnapshot().rows.at(0).state, SequenceRow::State::kLoading);
  tier_.AnswerAll();
  tier_.answers = true;
  Play();
  EXPECT_EQ(tier_.num_fetches, asked) << "nothing is asked for twice";
  EXPECT_EQ(sink->tokens, computed->tokens);
  EXPECT_EQ(sink->record->num_loaded, 48);
  EXPECT_GT(sink->record->loading_us, 0);
}

TEST_F(TierTest, CancelInLineLeavesNothing) {
  options_.scheduler.max_sequences = 1;
  Restart();
  const std::vector<Token> prompt = Prompt(2, 60);
  Answer(prompt);
  Restart();
  tier_.answers = false;
  Ask(Prompt(3, 20));
  Ask(prompt);
  core_->Step();
  EXPECT_EQ(counts().ahead, 1);
  core_->Cancel(last_);
  core_->Step();
  EXPECT_EQ(counts().ahead + counts().fetching, 0);
  EXPECT_EQ(counts().ahead_bytes, 0);
  tier_.AnswerAll();
  Play();
}

TEST_F(TierTest, AMissNamesTheTier) {
  using Why = TierMiss::Why;
  const std::vector<Token> prompt = Prompt(1, 150);
  const auto fresh = Answer(prompt);
  EXPECT_EQ(fresh->record->tier_miss.why, Why::kAbsent);
  EXPECT_EQ(fresh->record->tier_miss.tier, "memory");
  Restart();
  const auto loaded = Answer(prompt);
  EXPECT_EQ(loaded->record->tier_miss.why, Why::kNone);
  ASSERT_EQ(loaded->record->loaded_from.size(), 1u);
  EXPECT_EQ(loaded->record->loaded_from[0].tier, "memory");
  EXPECT_EQ(loaded->record->loaded_from[0].tokens, 144);
  for (auto& [place, record] : tier_.records) record.back() ^= std::byte{1};
  Restart();
  EXPECT_EQ(Answer(prompt)->record->tier_miss.why, Why::kLost);
  options_.tier.max_load_us = 50'000;
  Restart();
  tier_.answers = false;
  EXPECT_EQ(Answer(prompt)->record->tier_miss.why, Why::kLate);
  ASSERT_EQ(counts().misses.size(), 1u);
  EXPECT_EQ(counts().misses[0].counts[static_cast<size_t>(Why::kLate)], 1u);
}

TEST_F(TierTest, CancelWhileLoadingLeavesNothing) {
  const auto sink = AskWhileSilent(Prompt(1, 150));
  core_->Cancel(last_);
  core_->Step();
  EXPECT_EQ(sink->record->finish, Finish::kCancelled);
  EXPECT_EQ(counts().loading + counts().fetching, 0);
  EXPECT_EQ(counts().staged_bytes, 0);
  tier_.AnswerAll();
  Play();
  EXPECT_EQ(counts().staged_bytes, 0);
}

TEST_F(TierTest, DamagedBytesAreComputedAgain) {
  const std::vector<Token> prompt = Prompt(1, 150);
  const auto computed = Answer(prompt);
  for (auto& [place, record] : tier_.records) record.back() ^= std::byte{1};
  Restart();
  const auto again = Answer(prompt);
  EXPECT_EQ(again->tokens, computed->tokens);
  EXPECT_EQ(again->record->num_cached, 0);
  EXPECT_GT(counts().num_fetches_lost, 0u);
}

TEST_F(TierTest, AFullTierStopsNobody) {
  tier_.accepts = false;
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(Answer(Prompt(i, 100))->tokens.size(), 2u);
  EXPECT_GT(counts().num_stores_lost, 0u);
  EXPECT_EQ(counts().num_stored, 0u);
}

TEST_F(TierTest, AFailedStepStoresNothing) {
  Answer(Prompt(1, 32));
  const int stored = tier_.num_stores;
  backend_->options().before_run = [](const StepPlan&) { return Error(Code::kIo, "no"); };
  Answer(Prompt(2, 100));
  EXPECT_EQ(tier_.num_stores, stored);
}

}  // namespace
}  // namespace hearth
