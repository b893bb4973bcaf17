// SPDX-License-Identifier: Apache-2.0
// The engine's loop on a fake backend under a virtual clock, and clients that check what they hear
// against what the backend's function says they must.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/clock.h"
#include "engine/engine_core.h"
#include "sampling/sampler.h"
#include "testing/fake_backend.h"
namespace hearth::testing {

// Reads everything at once unless it has a small capacity; then only what `num_read` says.
class Listener : public EventSink {
 public:
  int Room() const override { return capacity - (static_cast<int>(tokens.size()) - num_read); }
  void OnToken(const TokenEvent& event) override {
    EXPECT_EQ(event.index, static_cast<int>(tokens.size())) << "a token was lost or came twice";
    EXPECT_FALSE(record.has_value()) << "a token after the end";
    EXPECT_GT(Room(), 0) << "more than the buffer holds";
    tokens.push_back(event.token);
  }
  void OnFinish(const RequestRecord& ended) override {
    EXPECT_FALSE(record.has_value()) << "ended twice";
    record = ended;
  }
  Finish finish() const { return record ? record->finish : Finish::kNone; }

  int capacity = 1'000'000, num_read = 0;
  std::vector<Token> tokens;
  std::optional<RequestRecord> record;
};

struct Client {
  Request request;
  std::shared_ptr<Listener> heard = std::make_shared<Listener>();
  Admission admission;
};

class EngineRig {
 public:
  // A step takes `step_us` plus `token_us` for every token.
  explicit EngineRig(FakeOptions fake = {}, EngineOptions options = {}, int64_t step_us = 1000,
                     int64_t token_us = 10)
      : backend(WithClock(std::move(fake), step_us, token_us)),
        core(backend, WithChecks(std::move(options)), clock) {}

  Client Submit(Request request) {
    Client client;
    client.request = request;
    client.admission = core.Submit(std::move(request), client.heard);
    return client;
  }
  Client Submit(int prompt_tokens, int max_tokens, uint64_t seed = 1) {
    return Submit(MakeRequest(prompt_tokens, max_tokens, seed));
  }
  Request MakeRequest(int prompt_tokens, int max_tokens, uint64_t seed = 1) const {
    Request request;
    for (int i = 0; i < prompt_tokens; ++i) {
      request.prompt.push_back(FakeBackend::RandomToken(seed, i, backend.vocab_size()));
    }
    request.max_tokens = max_tokens;
    request.sampling.seed = seed;
    return request;
  }
  // Until nothing is left, at most `limit` steps.
  void Finish(int limit = 100'000) {
    for (int i = 0; i < limit; ++i) {
      if (core.Step()) continue;
      if (core.is_idle()) return;
      clock.Advance(core.SleepUs());
    }
    ADD_FAILURE() << "still busy after " << limit << " steps";
  }
  // The tokens that the client must hear if nothing stops it early.
  std::vector<Token> Expected(const Request& request) const {
    std::vector<Token> all = request.prompt, out;
    Sampler sampler;
    SamplerState past(request.sampling, request.prompt);
    for (int i = 0; i < request.max_tokens; ++i) {
      out.push_back(sampler.Choose(backend.LogitsAfter(all), request.sampling, past));
      past.Append(out.back());
      all.push_back(out.back());
    }
    return out;
  }
  // It heard exactly what it must, as far as it got.
  void ExpectRight(const Client& client) const {
    std::vector<Token> expected = Expected(client.request);
    ASSERT_LE(client.heard->tokens.size(), expected.size());
    expected.resize(client.heard->tokens.size());
    EXPECT_EQ(client.heard->tokens, expected);
  }
  void ExpectNothingHeld() const {
    for (int group = 0; group < core.kv().layout().num_groups(); ++group) {
      EXPECT_EQ(core.kv().counts(group).held, 0);
      EXPECT_EQ(core.kv().counts(group).pinned, 0);
    }
    const Status status = core.kv().SelfCheck();
    EXPECT_TRUE(status.ok()) << status.message();
  }

  VirtualClock clock;
  FakeBackend backend;
  EngineCore core;

 private:
  static EngineOptions WithChecks(EngineOptions options) {
    options.self_check_every = 1;
    return options;
  }
  FakeOptions WithClock(FakeOptions fake, int64_t step_us, int64_t token_us) {
    auto inner = std::move(fake.before_run);
    fake.before_run = [this, inner, step_us, token_us](const StepPlan& plan) {
      clock.Advance(step_us + token_us * static_cast<int64_t>(plan.tokens.size()));
      return inner ? inner(plan) : Status();
    };
    return fake;
  }
};

}  // namespace hearth::testing
