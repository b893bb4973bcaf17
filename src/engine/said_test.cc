// SPDX-License-Identifier: Apache-2.0
// Sequences that go on after what they said in another life.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/event_buffer.h"
#include "testing/fake_backend.h"

namespace hearth {
namespace {

using testing::FakeBackend;
using testing::FakeOptions;

Request Of(uint64_t seed) {
  Request request;
  for (int i = 0; i < 21; ++i) {
    request.prompt.push_back(FakeBackend::RandomToken(seed, i, 64));
  }
  request.max_tokens = 40;
  request.sampling.seed = seed;
  request.sampling.frequency_penalty = 0.8f;
  request.sampling.repetition_penalty = 1.3f;
  request.sampling.dry_multiplier = 0.5f;
  request.sampling.min_tokens = 10;
  request.choice = static_cast<uint32_t>(seed % 3);
  return request;
}

struct Heard {
  std::vector<Token> tokens;
  std::vector<int> indices;
  RequestRecord record;
};
Heard Ask(Engine& engine, const Request& request) {
  const auto buffer = std::make_shared<EventBuffer>();
  EXPECT_TRUE(engine.Submit(request, buffer).ok());
  Heard heard;
  while (true) {
    for (const TokenEvent& event : buffer->Wait(100'000)) {
      heard.tokens.push_back(event.token);
      heard.indices.push_back(event.index);
    }
    if (const auto ended = buffer->ended()) {
      heard.record = *ended;
      return heard;
    }
  }
}

TEST(Said, TheRestIsWhatItWouldHaveBeen) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
    const Heard whole = Ask(engine, Of(seed));
    ASSERT_EQ(whole.tokens.size(), 40u);
    for (const size_t count : {1u, 2u, 15u, 16u, 17u, 38u, 39u}) {
      // One that knows the beginning, and one that never heard of it.
      Engine fresh(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
      for (Engine* each : {&engine, &fresh}) {
        Request request = Of(seed);
        const auto cut = whole.tokens.begin() + static_cast<long>(count);
        request.said.assign(whole.tokens.begin(), cut);
        const Heard rest = Ask(*each, request);
        EXPECT_EQ(rest.tokens, std::vector<Token>(cut, whole.tokens.end())) << count;
        EXPECT_EQ(rest.indices.front(), static_cast<int>(count));
        EXPECT_EQ(rest.record.finish, Finish::kLength);
        EXPECT_EQ(rest.record.num_prompt, 21);
        EXPECT_EQ(rest.record.num_generated, 40 - static_cast<int>(count));
        EXPECT_LE(rest.record.num_cached, 21);
      }
    }
  }
}

TEST(Said, WhatCannotBeIsRefused) {
  Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
  const auto refuses = [&](const Request& request) {
    const Admission admission = engine.Submit(request, std::make_shared<EventBuffer>());
    return admission.status.code() == Code::kInvalid;
  };
  Request request = Of(1);
  request.said.assign(40, 1);
  EXPECT_TRUE(refuses(request));
  request.said = {1'000'000};
  EXPECT_TRUE(refuses(request));
  request.said = {1};
  request.prompt_only = true;
  EXPECT_TRUE(refuses(request));
  request.prompt_only = false;
  request.max_tokens = 0;
  request.said.assign(1'000'000, 1);
  EXPECT_TRUE(refuses(request));
}

}  // namespace
}  // namespace hearth
