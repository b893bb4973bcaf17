// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::Client;
using testing::EngineRig;
using testing::FakeOptions;

TEST(EngineCore, ALoneRequestHearsWhatTheBackendSays) {
  EngineRig rig;
  const Client client = rig.Submit(21, 30);
  ASSERT_TRUE(client.admission.ok()) << client.admission.status.message();
  rig.Finish();
  ASSERT_EQ(client.heard->finish(), Finish::kLength);
  EXPECT_EQ(client.heard->tokens.size(), 30u);
  rig.ExpectRight(client);
  rig.ExpectNothingHeld();
  const RequestRecord& record = *client.heard->record;
  EXPECT_EQ(record.num_prompt, 21);
  EXPECT_EQ(record.num_generated, 30);
  EXPECT_EQ(record.num_computed, 21 + 29);
  EXPECT_EQ(record.num_cached, 0);
  EXPECT_EQ(record.num_preempted, 0);
  EXPECT_EQ(record.waited_us, 0);
  EXPECT_GT(record.first_token_us, record.arrived_us);
  EXPECT_GT(record.ended_us, record.first_token_us);
}

TEST(EngineCore, TheTokenThatStopsIsTheLastThatIsHeard) {
  EngineRig rig;
  Request request = rig.MakeRequest(5, 30);
  const std::vector<Token> whole = rig.Expected(request);
  request.sampling.stop_tokens = {whole[7]};
  const auto first =
      static_cast<size_t>(std::find(whole.begin(), whole.end(), whole[7]) - whole.begin());
  const Client client = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(client.heard->finish(), Finish::kStop);
  EXPECT_EQ(client.heard->tokens, std::vector<Token>(whole.begin(), whole.begin() + first + 1));
}

TEST(EngineCore, ASecondTurnFindsTheFirst) {
  EngineRig rig;
  Client first = rig.Submit(40, 20);
  rig.Finish();
  Request request = first.request;
  request.prompt.insert(request.prompt.end(), first.heard->tokens.begin(),
                        first.heard->tokens.end());
  const Request more = rig.MakeRequest(10, 0, 77);
  request.prompt.insert(request.prompt.end(), more.prompt.begin(), more.prompt.end());
  const Client second = rig.Submit(request);
  rig.Finish();
  rig.ExpectRight(second);
  EXPECT_EQ(second.heard->record->num_cached, 48);  // of the 59 that were computed, whole blocks
  EXPECT_EQ(second.heard->record->num_computed, 70 - 48 + 19);
}

TEST(EngineCore, ManyAtOnceHearTheSameAsAlone) {
  EngineOptions options;
  options.scheduler.max_sequences = 16;
  EngineRig rig({.full_blocks = 400, .window_blocks = 400}, options);
  std::vector<Client> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(rig.Submit(1 + i * 3, 1 + i % 17, static_cast<uint64_t>(i % 20)));
    rig.core.Step();
  }
  rig.Finish();
  for (const Client& client : clients) {
    ASSERT_EQ(client.heard->finish(), Finish::kLength);
    rig.ExpectRight(client);
  }
  rig.ExpectNothingHeld();
}

TEST(EngineCore, CancelTakesEffectBeforeTheNextStepInEveryState) {
  EngineOptions options;
  options.scheduler.max_sequences = 1;
  options.scheduler.quiet_step_us = 2000;
  EngineRig rig({.full_blocks = 100}, options);
  const Client decoding = rig.Submit(5, 100, 1);
  const Client waiting = rig.Submit(5, 100, 2);
  for (int i = 0; i < 5; ++i) rig.core.Step();
  const size_t heard = decoding.heard->tokens.size();
  EXPECT_GT(heard, 0u);
  rig.core.Cancel(decoding.admission.id);
  rig.core.Cancel(waiting.admission.id);
  EXPECT_FALSE(rig.core.Step());
  EXPECT_EQ(decoding.heard->finish(), Finish::kCancelled);
  EXPECT_EQ(decoding.heard->tokens.size(), heard);
  EXPECT_EQ(waiting.heard->finish(), Finish::kCancelled);
  EXPECT_TRUE(waiting.heard->tokens.empty());
  rig.ExpectNothingHeld();
  rig.core.Cancel(decoding.admission.id);  // again, and unknown: nothing happens
  rig.core.Cancel(static_cast<SeqId>(999));
  EXPECT_FALSE(rig.core.Step());
}

TEST(EngineCore, AnAbortedPrefillStaysCached) {
  EngineOptions options;
  options.scheduler.quiet_step_us = 4000;  // some 300 tokens
  EngineRig rig({.full_blocks = 100, .window_blocks = 100}, options);
  const Client first = rig.Submit(900, 10);
  rig.core.Step();
  rig.core.Step();
  EXPECT_TRUE(first.heard->tokens.empty());
  rig.core.Cancel(first.admission.id);
  rig.core.Step();
  EXPECT_EQ(first.heard->finish(), Finish::kCancelled);
  const Client again = rig.Submit(900, 10);
  rig.Finish();
  rig.ExpectRight(again);
  EXPECT_GE(again.heard->record->num_cached, 256);
}

TEST(EngineCore, ARowWithoutNumbersFailsAloneAndIsNotCached) {
  FakeOptions fake;
  fake.nan_token = 63;
  fake.full_blocks = fake.window_blocks = 100;
  EngineRig rig(fake);
  Request good = rig.MakeRequest(30, 20, 5);
  for (Token& token : good.prompt) token %= 63;
  const Client neighbour = rig.Submit(good);
  Request bad = good;
  bad.prompt.push_back(63);
  bad.prompt.resize(64, 1);
  const Client broken = rig.Submit(bad);
  rig.Finish();
  EXPECT_EQ(broken.heard->finish(), Finish::kError);
  EXPECT_EQ(broken.heard->record->detail, "numerical_error");
  EXPECT_TRUE(broken.heard->tokens.empty());
  // The neighbour may sample token 63 by itself and then fails for that; this one does not.
  EXPECT_EQ(neighbour.heard->finish(), Finish::kLength);
  rig.ExpectRight(neighbour);
  const Client again = rig.Submit(bad);
  rig.Finish();
  // The 30 tokens they share give one block; nothing after it was published by the broken one.
  EXPECT_LE(again.heard->record->num_cached, 16);
  rig.ExpectNothingHeld();
}

TEST(EngineCore, AFailedStepEndsItsRequestsAndNoOthers) {
  bool fail = false;
  Code code = Code::kIo;
  FakeOptions fake;
  fake.before_run = [&](const StepPlan&) {
    return fail ? Error(code, "the device went away") : Status();
  };
  EngineRig rig(fake);
  const Client first = rig.Submit(10, 50, 1);
  rig.core.Step();
  fail = true;
  rig.core.Step();
  fail = false;
  EXPECT_EQ(first.heard->finish(), Finish::kError);
  EXPECT_EQ(first.heard->record->detail, "the device went away");
  EXPECT_FALSE(first.heard->record->lacked_memory);
  const Client second = rig.Submit(10, 50, 1);
  rig.Finish();
  EXPECT_EQ(second.heard->finish(), Finish::kLength);
  rig.ExpectRight(second);
  EXPECT_EQ(rig.core.TakeSnapshot().num_backend_failures, 1u);
  code = Code::kExhausted;
  fail = true;
  const Client third = rig.Submit(10, 50, 1);
  rig.core.Step();
  EXPECT_TRUE(third.heard->record->lacked_memory) << "it may be tried again";
  rig.ExpectNothingHeld();
}

TEST(EngineCore, ASlowReaderIsPausedThenGoesOn) {
  EngineRig rig;
  const Client slow = rig.Submit(10, 40, 1);
  slow.heard->capacity = 5;
  const Client quick = rig.Submit(10, 40, 2);
  while (quick.heard->finish() == Finish::kNone) rig.core.Step();
  EXPECT_EQ(slow.heard->tokens.size(), 5u);
  EXPECT_EQ(slow.heard->finish(), Finish::kNone);
  EXPECT_EQ(rig.core.scheduler().load().num_paused, 1);
  EXPECT_GT(rig.core.kv().counts(0).held, 0);
  slow.heard->num_read = 3;
  for (int i = 0; i < 9; ++i) rig.core.Step();
  EXPECT_EQ(slow.heard->tokens.size(), 8u);
  slow.heard->num_read = 8;
  slow.heard->capacity = 1000;
  rig.Finish();
  EXPECT_EQ(slow.heard->finish(), Finish::kLength);
  EXPECT_GT(slow.heard->record->paused_us, 0);
  rig.ExpectRight(slow);
  rig.ExpectRight(quick);
}

TEST(EngineCore, AReaderThatNeverComesBackIsDropped) {
  EngineRig rig;
  const Client slow = rig.Submit(10, 40, 1);
  slow.heard->capacity = 5;
  while (rig.core.Step()) {
  }
  const int64_t paused_us = rig.clock.now_us();
  rig.Finish();
  EXPECT_EQ(slow.heard->finish(), Finish::kSlowReader);
  EXPECT_EQ(slow.heard->tokens.size(), 5u);
  EXPECT_NEAR(static_cast<double>(rig.clock.now_us() - paused_us), 30e6, 1e5);
  rig.ExpectNothingHeld();
}

TEST(EngineCore, APausedSequenceThatStepsBackKeepsItsTokens) {
  // 8 blocks: the reader that is behind holds 3 when the other one needs all.
  EngineRig rig({.full_blocks = 8, .window_blocks = 16});
  const Client slow = rig.Submit(30, 20, 1);
  slow.heard->capacity = 4;
  while (slow.heard->tokens.size() < 4) rig.core.Step();
  const Client big = rig.Submit(60, 60, 2);
  while (big.heard->finish() == Finish::kNone) rig.core.Step();
  EXPECT_EQ(slow.heard->finish(), Finish::kNone);
  EXPECT_EQ(slow.heard->tokens.size(), 4u);
  slow.heard->capacity = 1000;
  rig.Finish();
  EXPECT_EQ(slow.heard->finish(), Finish::kLength);
  EXPECT_GE(slow.heard->record->num_preempted, 1);
  rig.ExpectRight(slow);
  rig.ExpectRight(big);
}

TEST(EngineCore, DrainFinishesWhatItCanAndEndsTheRest) {
  EngineRig rig;
  const Client quick = rig.Submit(10, 5, 1);
  const Client endless = rig.Submit(10, 900, 2);
  rig.core.Step();
  rig.core.Drain(50'000);
  const Client late = rig.Submit(10, 5, 3);
  EXPECT_EQ(late.admission.status.code(), Code::kExhausted);
  EXPECT_GT(late.admission.retry_after_s, 0);
  rig.Finish();
  EXPECT_EQ(quick.heard->finish(), Finish::kLength);
  EXPECT_EQ(endless.heard->finish(), Finish::kShutdown);
  EXPECT_LT(rig.clock.now_us(), 80'000);
  EXPECT_FALSE(late.heard->record.has_value());
  rig.ExpectNothingHeld();
}

TEST(EngineCore, WhatExpiresInTheQueueIsNeverComputed) {
  EngineOptions options;
  options.scheduler.max_sequences = 1;
  EngineRig rig({}, options);
  const Client first = rig.Submit(10, 100, 1);
  rig.core.Step();
  Request hurried = rig.MakeRequest(10, 100, 2);
  hurried.timeout_us = 20'000;
  const Client second = rig.Submit(hurried);
  ASSERT_TRUE(second.admission.ok());
  rig.Finish();
  EXPECT_EQ(second.heard->finish(), Finish::kExpired);
  EXPECT_EQ(second.heard->record->num_computed, 0);
  EXPECT_LE(second.heard->record->waited_us, 22'000);
  EXPECT_EQ(first.heard->finish(), Finish::kLength);
}

TEST(EngineCore, RestDoesNotLengthenThePredictedWait) {
  EngineOptions options;
  options.scheduler.max_sequences = 2;
  EngineRig rig({}, options);
  rig.Submit(20, 4);
  rig.Finish();
  rig.clock.Advance(int64_t{3600} * 1'000'000);
  rig.Submit(20, 4, 2);
  rig.Finish();
  rig.clock.Advance(int64_t{3600} * 1'000'000);
  for (uint64_t seed = 3; seed < 40; ++seed) {
    const Client client = rig.Submit(20, 4, seed);
    ASSERT_TRUE(client.admission.ok()) << client.admission.status.message();
    EXPECT_LT(client.admission.predicted_wait_s, 1);  // a step takes some milliseconds
    rig.core.Step();
  }
  rig.Finish();
}

TEST(EngineCore, TheSnapshotCountsWhatHappened) {
  EngineRig rig;
  const Client first = rig.Submit(40, 10, 1);
  const Client second = rig.Submit(40, 10, 1);
  rig.core.Step();
  EngineSnapshot snapshot = rig.core.TakeSnapshot();
  EXPECT_EQ(snapshot.load.num_running + snapshot.load.num_waiting, 2);
  ASSERT_EQ(snapshot.rows.size(), 2u);
  EXPECT_EQ(snapshot.rows[0].num_prompt, 40);
  EXPECT_EQ(snapshot.limits.max_running, SchedulerOptions().max_sequences);
  EXPECT_EQ(snapshot.limits.max_waiting, AdmissionLimits().max_requests);
  // One step of 1 ms and 10 us a token: its means are its own.
  EXPECT_EQ(snapshot.steps.mean_tokens, 1.0 * static_cast<double>(snapshot.totals.prefill_tokens));
  EXPECT_EQ(snapshot.steps.mean_us, 1000 + 10 * snapshot.steps.mean_tokens);
  rig.Finish();
  rig.Submit(40, 10, 1);
  rig.Finish();
  snapshot = rig.core.TakeSnapshot();
  EXPECT_EQ(snapshot.num_admitted, 3u);
  EXPECT_EQ(snapshot.num_finished[static_cast<size_t>(Finish::kLength)], 3u);
  EXPECT_EQ(snapshot.prompt_tokens, 120);
  EXPECT_EQ(snapshot.generated_tokens, 30);
  EXPECT_GE(snapshot.cached_tokens, 32);
  ASSERT_EQ(snapshot.kv.size(), 2u);
  const KvCounts full = snapshot.kv[0].counts;
  EXPECT_EQ(full.total, 64);
  EXPECT_EQ(full.free + full.held + full.cached + full.pinned, 64);
  EXPECT_GT(snapshot.steps.p99_us, 0);
  const double rate = snapshot.decode_tokens_per_s;
  EXPECT_GT(rate, 0);
  rig.clock.Advance(3'600'000'000);  // an hour without a request is not slow work
  rig.Submit(40, 10, 1);
  rig.Finish();
  EXPECT_GT(rig.core.TakeSnapshot().decode_tokens_per_s, 0.5 * rate);
  // A step here takes 1 ms and 10 us for every token: none is over 2 ms.
  const StepHistogram& steps = snapshot.step_histogram;
  EXPECT_EQ(static_cast<int64_t>(steps.counts[2]), snapshot.totals.num_steps);
  EXPECT_GE(steps.sum_us, snapshot.totals.num_steps * 1'000);
  EXPECT_TRUE(snapshot.rows.empty());
}

}  // namespace
}  // namespace hearth
