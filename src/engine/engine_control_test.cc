// SPDX-License-Identifier: Apache-2.0
// Masks, log-probabilities and several replies to one prompt, through the loop on a fake backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "engine/engine.h"
#include "engine/event_buffer.h"
#include "engine/replies.h"
#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::Client;
using testing::EngineRig;
using testing::FakeBackend;

// Allows what a fixed list says, position by position: every token t with t % stride == offset of
// that position; finished after the list when `stop` was written.
struct MaskScript {
  int stride = 4;
  int length = 10;
  Token stop = 3;
  int fails_at = -1;  // Fill number that fails
  std::atomic<int> num_fills{0}, num_accepted{0};
  std::atomic<std::thread::id> filled_on{};
};

class ScriptedMask : public TokenMask {
 public:
  explicit ScriptedMask(MaskScript& script) : script_(script) {}
  Status Fill(std::span<uint32_t> bits) override {
    script_.filled_on = std::this_thread::get_id();
    if (script_.num_fills++ == script_.fails_at) return Error(Code::kInvalid, "too deep");
    std::fill(bits.begin(), bits.end(), 0);
    if (finished_) return {};
    if (position_ >= script_.length) {
      bits[static_cast<size_t>(script_.stop) / 32] |= uint32_t{1} << (script_.stop % 32);
      return {};
    }
    for (int t = position_ % script_.stride; t < 32; t += script_.stride) {
      bits[0] |= uint32_t{1} << t;
    }
    return {};
  }
  bool Accept(Token token) override {
    if (finished_) return false;
    ++script_.num_accepted;
    if (position_ >= script_.length) {
      finished_ = token == script_.stop;
      return finished_;
    }
    if (token % script_.stride != position_ % script_.stride) return false;
    ++position_;
    return true;
  }
  bool is_finished() const override { return finished_; }
  std::unique_ptr<TokenMask> Clone() const override {
    return std::make_unique<ScriptedMask>(*this);
  }

 private:
  MaskScript& script_;
  int position_ = 0;
  bool finished_ = false;
};

void ExpectScripted(const std::vector<Token>& tokens, const MaskScript& script) {
  ASSERT_EQ(static_cast<int>(tokens.size()), script.length + 1);
  for (int i = 0; i < script.length; ++i) {
    EXPECT_EQ(tokens[static_cast<size_t>(i)] % script.stride, i % script.stride) << i;
  }
  EXPECT_EQ(tokens.back(), script.stop);
}

TEST(EngineControl, AMaskSaysWhatComesAndWhereItEnds) {
  EngineRig rig;
  MaskScript script;
  Request request = rig.MakeRequest(20, 50);
  request.mask = std::make_shared<ScriptedMask>(script);
  // Half of what the mask allows would stop a sequence that has none.
  request.sampling.stop_tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Client masked = rig.Submit(request);
  const Client plain = rig.Submit(20, 50, 7);
  rig.Finish();
  EXPECT_EQ(masked.heard->finish(), Finish::kStop);
  ExpectScripted(masked.heard->tokens, script);
  EXPECT_EQ(plain.heard->finish(), Finish::kLength);
  rig.ExpectRight(plain);
  const MaskTotals totals = rig.core.TakeSnapshot().masks;
  EXPECT_EQ(totals.num_fills, script.length + 1);
  EXPECT_EQ(totals.num_steps, script.length + 1);
  EXPECT_EQ(script.num_accepted, script.length + 1);
}

TEST(EngineControl, BansThatLeaveNothingGiveWayToTheMask) {
  EngineRig rig;
  MaskScript script;
  Request request = rig.MakeRequest(20, 50);
  request.mask = std::make_shared<ScriptedMask>(script);
  request.sampling.stop_tokens = {script.stop};
  request.sampling.min_tokens = 40;
  const Client client = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(client.heard->finish(), Finish::kStop);
  ExpectScripted(client.heard->tokens, script);
}

TEST(EngineControl, AMaskThatFailsEndsItsOwnSequence) {
  EngineRig rig;
  MaskScript bad, good;
  bad.fails_at = 4;
  Request request = rig.MakeRequest(20, 50);
  request.mask = std::make_shared<ScriptedMask>(bad);
  const Client failed = rig.Submit(request);
  request.mask = std::make_shared<ScriptedMask>(good);
  const Client other = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(failed.heard->finish(), Finish::kMask);
  EXPECT_EQ(failed.heard->record->detail, "too deep");
  EXPECT_EQ(failed.heard->tokens.size(), 4u);
  EXPECT_EQ(other.heard->finish(), Finish::kStop);
  ExpectScripted(other.heard->tokens, good);
  rig.ExpectNothingHeld();
}

TEST(EngineControl, SteppingBackDoesNotDisturbAMask) {
  EngineOptions options;
  options.scheduler.headroom_blocks = 0;
  EngineRig crowded({.full_blocks = 24, .window_blocks = 24}, options);
  EngineRig roomy({.full_blocks = 2000, .window_blocks = 2000});
  std::vector<Client> squeezed, alone;
  std::vector<std::unique_ptr<MaskScript>> scripts;
  for (EngineRig* rig : {&crowded, &roomy}) {
    for (int i = 0; i < 12; ++i) {
      scripts.push_back(std::make_unique<MaskScript>());
      scripts.back()->length = 60 + i;
      Request request = rig->MakeRequest(10 + i, 100, static_cast<uint64_t>(i));
      request.mask = std::make_shared<ScriptedMask>(*scripts.back());
      (rig == &crowded ? squeezed : alone).push_back(rig->Submit(request));
    }
    rig->Finish();
  }
  EXPECT_GT(crowded.core.scheduler().totals().num_preemptions, 0);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(squeezed[i].heard->finish(), Finish::kStop);
    EXPECT_EQ(squeezed[i].heard->tokens, alone[i].heard->tokens);
  }
}

TEST(EngineControl, MasksAreFilledBesideTheStep) {
  MaskScript script;
  script.length = 40;
  testing::FakeOptions fake;
  std::atomic<std::thread::id> engine_thread{};
  fake.before_run = [&](const StepPlan&) {
    engine_thread = std::this_thread::get_id();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return Status();
  };
  auto buffer = std::make_shared<EventBuffer>();
  EngineRig maker;
  Request request = maker.MakeRequest(20, 100);
  request.mask = std::make_shared<ScriptedMask>(script);
  MaskTotals totals;
  std::vector<Token> tokens;
  {
    Engine engine(std::make_unique<FakeBackend>(fake), EngineOptions());
    ASSERT_TRUE(engine.Submit(std::move(request), buffer).ok());
    while (!buffer->ended()) {
      for (const TokenEvent& event : buffer->Wait(1'000'000)) tokens.push_back(event.token);
    }
    engine.Drain(1'000'000);
    while (engine.snapshot()->masks.num_steps < script.length + 1) std::this_thread::yield();
    totals = engine.snapshot()->masks;
  }
  ExpectScripted(tokens, script);
  EXPECT_NE(script.filled_on.load(), engine_thread.load());
  EXPECT_EQ(totals.num_fills, script.length + 1);
  EXPECT_LT(totals.num_delayed, totals.num_steps);
}

TEST(EngineControl, AFailedStepLeavesNoFillBehind) {
  MaskScript script;
  testing::FakeOptions fake;
  int runs = 0;
  fake.before_run = [&](const StepPlan&) {
    return ++runs == 5 ? Error(Code::kIo, "broken") : Status();
  };
  EngineRig rig(fake);
  SideThread beside;
  EngineCore core(rig.backend, EngineOptions(), rig.clock, &beside);
  Request request = rig.MakeRequest(20, 50);
  request.mask = std::make_shared<ScriptedMask>(script);
  auto heard = std::make_shared<testing::Listener>();
  ASSERT_TRUE(core.Submit(request, heard).ok());
  while (core.Step()) continue;
  EXPECT_EQ(heard->finish(), Finish::kError);
  MaskScript second;
  request.mask = std::make_shared<ScriptedMask>(second);
  auto again = std::make_shared<testing::Listener>();
  ASSERT_TRUE(core.Submit(request, again).ok());
  while (core.Step()) continue;
  ExpectScripted(again->tokens, second);
}

// Notes what comes beside the tokens.
class LogprobListener : public testing::Listener {
 public:
  void OnToken(const TokenEvent& event) override {
    Listener::OnToken(event);
    logprobs.push_back(event.logprobs);
  }
  std::vector<std::shared_ptr<const Logprobs>> logprobs;
};

TEST(EngineControl, TokensComeWithTheModelsLogprobsWhenAsked) {
  EngineRig rig;
  Request request = rig.MakeRequest(20, 12);
  request.sampling.temperature = 2;
  request.sampling.num_logprobs = 3;
  auto heard = std::make_shared<LogprobListener>();
  ASSERT_TRUE(rig.core.Submit(request, heard).ok());
  auto silent = std::make_shared<LogprobListener>();
  ASSERT_TRUE(rig.core.Submit(rig.MakeRequest(20, 12), silent).ok());
  rig.Finish();
  ASSERT_EQ(heard->logprobs.size(), 12u);
  std::vector<Token> all = request.prompt;
  LogprobReader reader;
  for (size_t i = 0; i < heard->tokens.size(); ++i) {
    ASSERT_NE(heard->logprobs[i], nullptr);
    const Logprobs expected = reader.Read(rig.backend.LogitsAfter(all), heard->tokens[i], 3);
    EXPECT_EQ(heard->logprobs[i]->chosen.token, heard->tokens[i]);
    EXPECT_EQ(heard->logprobs[i]->chosen.logprob, expected.chosen.logprob);
    ASSERT_EQ(heard->logprobs[i]->top.size(), 3u);
    EXPECT_EQ(heard->logprobs[i]->top[0].token, expected.top[0].token);
    EXPECT_EQ(heard->logprobs[i]->top[2].logprob, expected.top[2].logprob);
    all.push_back(heard->tokens[i]);
  }
  for (const auto& logprobs : silent->logprobs) EXPECT_EQ(logprobs, nullptr);
}

TEST(EngineControl, EveryChoiceHasDrawsOfItsOwn) {
  EngineRig rig;
  Request request = rig.MakeRequest(20, 30);
  request.sampling.temperature = 2;
  const Client first = rig.Submit(request), same = rig.Submit(request);
  request.choice = 1;
  const Client other = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(first.heard->tokens, same.heard->tokens);
  EXPECT_NE(first.heard->tokens, other.heard->tokens);
}

TEST(EngineControl, RepliesToOnePromptComputeItOnce) {
  EngineOptions options;
  options.scheduler.quiet_step_us = 4'000;  // some 300 tokens: the prompt takes several steps
  EngineRig rig({.full_blocks = 400, .window_blocks = 400}, options);
  Request request = rig.MakeRequest(1000, 20);
  request.sampling.temperature = 2;
  std::vector<Client> clients = {rig.Submit(request)};
  request.follows = clients[0].admission.id;
  for (uint32_t i = 1; i < 8; ++i) {
    request.choice = i;
    clients.push_back(rig.Submit(request));
  }
  rig.Finish();
  EXPECT_EQ(clients[0].heard->record->num_computed, 1000 + 19);
  for (size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i].heard->finish(), Finish::kLength);
    if (i > 0) {
      EXPECT_EQ(clients[i].heard->record->num_cached, 992);
      EXPECT_EQ(clients[i].heard->record->num_computed, 8 + 19);
      EXPECT_NE(clients[i].heard->tokens, clients[0].heard->tokens);
    }
  }
  EXPECT_EQ(rig.backend.num_tokens(), 1000 + 7 * 8 + 8 * 19);
  rig.ExpectNothingHeld();
}

TEST(EngineControl, FollowersGoOnWhenTheFirstIsGone) {
  EngineOptions options;
  options.scheduler.quiet_step_us = 4'000;
  EngineRig rig({.full_blocks = 400, .window_blocks = 400}, options);
  Request request = rig.MakeRequest(1000, 5);
  const Client first = rig.Submit(request);
  request.follows = first.admission.id;
  const Client second = rig.Submit(request);
  request.timeout_us = 2'000;
  const Client hurried = rig.Submit(request);
  rig.core.Step();
  EXPECT_EQ(second.heard->finish(), Finish::kNone);
  rig.core.Cancel(first.admission.id);
  rig.Finish();
  EXPECT_EQ(first.heard->finish(), Finish::kCancelled);
  EXPECT_EQ(second.heard->finish(), Finish::kLength);
  EXPECT_EQ(hurried.heard->finish(), Finish::kExpired);
  rig.ExpectRight(second);
  rig.ExpectNothingHeld();
}

TEST(EngineControl, AskingForSeveralRepliesGivesEachItsOwnMask) {
  MaskScript script;
  EngineRig maker;
  Request request = maker.MakeRequest(100, 50);
  request.sampling.temperature = 2;
  request.mask = std::make_shared<ScriptedMask>(script);
  std::vector<std::shared_ptr<EventSink>> sinks;
  std::vector<std::shared_ptr<EventBuffer>> buffers;
  for (int i = 0; i < 4; ++i) {
    buffers.push_back(std::make_shared<EventBuffer>());
    sinks.push_back(buffers.back());
  }
  Engine engine(std::make_unique<FakeBackend>(testing::FakeOptions()), EngineOptions());
  const std::vector<Admission> admissions = SubmitReplies(engine, request, sinks);
  ASSERT_EQ(admissions.size(), 4u);
  std::vector<std::vector<Token>> replies(4);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(admissions[i].ok());
    while (!buffers[i]->ended()) {
      for (const TokenEvent& event : buffers[i]->Wait(1'000'000)) replies[i].push_back(event.token);
    }
    ExpectScripted(replies[i], script);
    if (i > 0) {
      EXPECT_NE(replies[i], replies[0]);
      EXPECT_EQ(buffers[i]->ended()->num_cached, 96);
    }
  }
}

}  // namespace
}  // namespace hearth
