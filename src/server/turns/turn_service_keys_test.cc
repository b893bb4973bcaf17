// SPDX-License-Identifier: Apache-2.0
// Requests of several keys through the whole house but the sockets: what one may have and see of
// another's; what is taken out of a prompt, and whose fault a failure is.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using testing::Heard;
using testing::StringClient;
class TurnServiceKeysTest : public testing::ServiceRig {};

// What one tenant's prompts left in the cache, another one can tell neither by what is said nor by
// what is done: exactly the tokens of a cold run go through the model.
TEST_F(TurnServiceKeysTest, OneTenantDoesNotSeeAnothersCache) {
  Heard heard;
  ServiceOptions options;
  options.observer = &heard;
  Start(0, options);
  const std::string body = R"({"messages": [{"role": "user", "content": ")" +
                           std::string(300, 'x') + R"("}], "max_tokens": 4, "seed": 1})";
  std::vector<std::shared_ptr<StringClient>> clients;
  for (const char* key : {"ada", "ada", "bob", "bob", "", "cleo"}) {
    clients.push_back(Post("/v1/chat/completions", body, key));
    ASSERT_TRUE(clients.back()->WaitForEnd());
    ASSERT_EQ(clients.back()->status(), 200) << clients.back()->bytes();
  }
  ASSERT_TRUE(service_->WaitUntilDone(milliseconds(5000)));
  service_.reset();
  ASSERT_EQ(heard.outcomes.size(), 6u);
  const RequestRecord cold = heard.outcomes[0].records[0];
  EXPECT_EQ(cold.num_cached, 0);
  for (size_t i = 1; i < 6; ++i) {
    const RequestRecord& record = heard.outcomes[i].records[0];
    const bool is_second = i == 1 || i == 3;
    EXPECT_EQ(record.num_cached > 0, is_second) << i;
    EXPECT_EQ(record.num_computed == cold.num_computed, !is_second) << i;
    if (is_second) continue;
    for (const char* name :
         {"x-hearth-cached-tokens", "x-hearth-computed-tokens", "x-hearth-cache-miss"}) {
      EXPECT_EQ(clients[i]->header(name), clients[0]->header(name)) << i << name;
    }
  }
}

// A key's place is free again, and its tokens are given back, when nobody took its request.
TEST_F(TurnServiceKeysTest, AKeyIsNotChargedForWhatTheEngineRefused) {
  RateLimiter limiter;
  EngineOptions engine_options;
  engine_options.admission.max_requests = 1;
  engine_options.scheduler.max_sequences = 1;
  ServiceOptions options;
  options.limiter = &limiter;
  options.limits_of = [](const std::string& key) {
    return key == "ada" ? KeyLimits{.max_concurrent = 1, .tokens_per_minute = 1'000'000}
                        : KeyLimits{};
  };
  Start(/*step_us=*/2000, options, engine_options);
  const char* endless = R"("max_tokens": 3000, "ignore_eos": true)";
  std::vector<std::shared_ptr<StringClient>> crowd;
  // One that runs and one that waits. While the first still waits for the engine's thread, others
  // are refused.
  for (int i = 0; i < 4000 && engine_->snapshot()->num_admitted < 2; ++i) {
    crowd.push_back(Chat(endless, "bob"));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(WaitUntilAdmitted(2));
  for (int i = 0; i < 3; ++i) {
    const auto client = Chat(endless, "ada");
    ASSERT_TRUE(client->WaitForEnd());
    EXPECT_EQ(client->status(), 429);
    EXPECT_NE(client->bytes().find("\"overloaded\""), std::string::npos) << client->bytes();
  }
  for (const auto& client : crowd) client->Leave();
  EXPECT_TRUE(WaitUntilIdle());
  service_.reset();
  for (const RateLimiter::Counts& counts : limiter.counts()) {
    EXPECT_EQ(counts.num_running, 0) << counts.key;
    if (counts.key == "ada") {
      EXPECT_EQ(counts.prompt_tokens, 0);
    }
  }
  EXPECT_EQ(limiter.StandingOf("ada", 1LL << 60).tokens.remaining, 1'000'000);
}

// One reply at a time, one after the other without a pause: each finds its key's place free, and
// the key is charged what usage tells.
TEST_F(TurnServiceKeysTest, AKeyIsChargedWhatUsageTells) {
  RateLimiter limiter;
  ServiceOptions options;
  options.limiter = &limiter;
  options.limits_of = [](const std::string&) {
    return KeyLimits{.max_concurrent = 1, .tokens_per_minute = 1'000'000};
  };
  Start(0, options);
  int64_t prompt = 0, generated = 0;
  for (int i = 0; i < 8; ++i) {
    const auto client =
        Chat(Printf(R"("max_tokens": %d, "stop": "e", "seed": %d)", 3 + i, i), "ada");
    ASSERT_TRUE(client->WaitForEnd());
    ASSERT_EQ(client->status(), 200) << client->bytes();
    EXPECT_EQ(client->header("x-ratelimit-limit-tokens"), "1000000");
    const Json usage = *ParseJson(client->bytes())->Find("usage");
    prompt += *usage.Find("prompt_tokens")->integer();
    generated += *usage.Find("completion_tokens")->integer();
  }
  ASSERT_EQ(limiter.counts().size(), 1u);
  EXPECT_EQ(limiter.counts()[0].prompt_tokens, prompt);
  EXPECT_EQ(limiter.counts()[0].generated_tokens, generated);
  EXPECT_EQ(limiter.counts()[0].num_running, 0);
}

// A sink whose sequence's mask gives up after some tokens.
class MaskFails : public EventSink {
 public:
  explicit MaskFails(std::shared_ptr<EventSink> sink) : sink_(std::move(sink)) {}
  int Room() const override { return sink_->Room(); }
  void OnToken(const TokenEvent& event) override { sink_->OnToken(event); }
  void OnFinish(const RequestRecord& record) override {
    RequestRecord failed = record;
    failed.finish = Finish::kMask;
    failed.detail = "too deep";
    sink_->OnFinish(failed);
  }

 private:
  const std::shared_ptr<EventSink> sink_;
};

TEST_F(TurnServiceKeysTest, AMaskThatFailsIsTheRequestsFault) {
  ServiceOptions options;
  options.watch = [](std::shared_ptr<EventSink> sink) {
    return std::make_shared<MaskFails>(std::move(sink));
  };
  Start(0, options);
  const std::string members = R"("response_format": {"type": "json_object"}, "max_tokens": 5)";
  const auto whole = Chat(members);
  const auto stream = Chat(members + R"(, "stream": true)");
  ASSERT_TRUE(whole->WaitForEnd() && stream->WaitForEnd());
  EXPECT_EQ(whole->status(), 400) << whole->bytes();
  const Json error = *ParseJson(whole->bytes())->Find("error");
  EXPECT_EQ(*error.Find("code")->string(), "grammar_error");
  EXPECT_EQ(*error.Find("param")->string(), "response_format");
  EXPECT_EQ(*error.Find("type")->string(), "invalid_request_error");
  EXPECT_EQ(stream->status(), 200) << "the head went out before the first token";
  EXPECT_NE(stream->bytes().find(R"("code":"grammar_error")"), std::string::npos);
  EXPECT_EQ(stream->bytes().find("[DONE]"), std::string::npos) << "it is not whole";
}

TEST_F(TurnServiceKeysTest, SaysWhatItTookOutOfAPrompt) {
  Start();
  const auto ask = [&](const std::string& nonce, bool streams) {
    return Post("/v1/chat/completions",
                R"({"messages": [{"role": "system", "content": "x-anthropic-billing-header: cch=)" +
                    nonce + R"(;\n)" + std::string(200, 'y') +
                    R"("}, {"role": "user", "content": "hi"}], "max_tokens": 2, "stream": )" +
                    (streams ? "true}" : "false}"));
  };
  const auto first = ask("1a2b3", false);
  ASSERT_TRUE(first->WaitForEnd());
  EXPECT_EQ(first->header("x-hearth-neutralised"), "billing-header");
  EXPECT_EQ(first->header("x-hearth-cached-tokens"), "0");
  const auto second = ask("99999", false);
  ASSERT_TRUE(second->WaitForEnd());
  EXPECT_GT(second->header("x-hearth-cached-tokens").size(), 2u) << "hundreds";
  const auto third = ask("fffff", true);
  ASSERT_TRUE(third->WaitForEnd());
  EXPECT_EQ(third->header("x-hearth-neutralised"), "billing-header");
  const auto plain = Chat(R"("max_tokens": 2)");
  ASSERT_TRUE(plain->WaitForEnd());
  EXPECT_EQ(plain->header("x-hearth-neutralised"), "");
}

// Of requests that wait, the better class goes first, whoever came first; and a key's class bounds
// what its requests ask for.
TEST_F(TurnServiceKeysTest, ClassesGoInOrder) {
  RateLimiter limiter;
  Heard heard;
  EngineOptions engine_options;
  engine_options.scheduler.max_sequences = 1;
  ServiceOptions options;
  options.observer = &heard;
  options.limiter = &limiter;
  options.limits_of = [](const std::string& key) {
    return KeyLimits{.max_priority = key == "boss"    ? Priority::kUrgent
                                     : key == "batch" ? Priority::kIdle
                                                      : Priority::kNormal};
  };
  Start(/*step_us=*/3000, options, engine_options);
  std::vector<std::shared_ptr<StringClient>> clients;
  clients.push_back(Chat(R"("max_tokens": 60, "ignore_eos": true)", "first"));
  while (engine_->snapshot()->num_admitted < 1) std::this_thread::yield();
  const std::pair<const char*, const char*> asked[] = {
      {"batch", "-1"}, {"user", "2"}, {"user", "1"}, {"user", "0"}, {"boss", "-1"}};
  for (const auto& [key, priority] : asked) {
    clients.push_back(
        Chat(Printf(R"("max_tokens": 2, "ignore_eos": true, "priority": %s)", priority), key));
  }
  for (const auto& client : clients) {
    ASSERT_TRUE(client->WaitForEnd());
    ASSERT_EQ(client->status(), 200) << client->bytes();
  }
  ASSERT_TRUE(service_->WaitUntilDone(milliseconds(5000)));
  service_.reset();
  std::vector<std::pair<int64_t, Priority>> starts;
  for (const TurnOutcome& outcome : heard.outcomes) {
    if (outcome.key_id == "first") continue;
    starts.emplace_back(outcome.records[0].started_us, outcome.records[0].priority);
  }
  std::sort(starts.begin(), starts.end());
  ASSERT_EQ(starts.size(), 5u);
  const Priority wanted[] = {Priority::kUrgent, Priority::kNormal, Priority::kLow, Priority::kIdle,
                             Priority::kIdle};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(starts[i].second, wanted[i]) << i;
}

TEST_F(TurnServiceKeysTest, TimeRunsOut) {
  Start(/*step_us=*/5000);
  const std::string members = R"("max_tokens": 3000, "ignore_eos": true, "timeout": 0.1)";
  const auto whole = Chat(members);
  const auto stream = Chat(members + R"(, "stream": true)");
  ASSERT_TRUE(whole->WaitForEnd() && stream->WaitForEnd());
  EXPECT_EQ(whole->status(), 504) << whole->bytes();
  EXPECT_NE(whole->bytes().find(R"("code":"expired")"), std::string::npos) << whole->bytes();
  EXPECT_NE(stream->bytes().find(R"("code":"expired")"), std::string::npos);
  EXPECT_EQ(stream->bytes().find("[DONE]"), std::string::npos) << "it is not whole";
}

}  // namespace
}  // namespace hearth
