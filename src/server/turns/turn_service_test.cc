// SPDX-License-Identifier: Apache-2.0
// Requests through the whole house but the sockets: a real engine on a backend of hashes, harmony
// over bytes, masks, and a client made of strings.
#include "server/turns/turn_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "server/access/guard.h"
#include "server/api_docs.h"
#include "server/observe/health_routes.h"
#include "server/ui/page_routes.h"
#include "testing/service_rig.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using testing::Heard;
using testing::StringClient;
class TurnServiceTest : public testing::ServiceRig {};

// The deltas of a stream, joined by kind.
std::pair<std::string, std::string> Joined(const std::string& bytes) {
  std::pair<std::string, std::string> out;
  size_t at = 0;
  while ((at = bytes.find("data: {", at)) != std::string::npos) {
    const size_t end = bytes.find("\n\n", at);
    const Json chunk = *ParseJson(bytes.substr(at + 6, end - at - 6));
    at = end;
    const JsonArray& choices = *chunk.Find("choices")->array();
    if (choices.empty()) continue;
    const Json& delta = *choices[0].Find("delta");
    if (const Json* text = delta.Find("content")) out.first += *text->string();
    if (const Json* text = delta.Find("reasoning")) out.second += *text->string();
  }
  return out;
}

TEST_F(TurnServiceTest, StreamsWhatItTellsWhole) {
  Start();
  for (int seed = 0; seed < 20; ++seed) {
    const std::string members =
        Printf(R"("seed": %d, "max_tokens": %d, "stop": ["ab", "e"])", seed, 5 + 7 * seed);
    const auto whole = Chat(members);
    const auto stream = Chat(members + R"(, "stream": true)");
    ASSERT_TRUE(whole->WaitForEnd() && stream->WaitForEnd());
    ASSERT_EQ(whole->status(), 200) << whole->bytes();
    EXPECT_EQ(stream->header("content-type"), "text/event-stream");
    EXPECT_NE(stream->bytes().find("data: [DONE]"), std::string::npos);
    const Json json = *ParseJson(whole->bytes());
    const Json& message = *(*json.Find("choices")->array())[0].Find("message");
    const Json* reasoning = message.Find("reasoning");
    const auto [content, thoughts] = Joined(stream->bytes());
    EXPECT_EQ(content, *message.Find("content")->string());
    EXPECT_EQ(thoughts, reasoning == nullptr ? "" : *reasoning->string());
  }
  EXPECT_TRUE(WaitUntilIdle());
}

TEST_F(TurnServiceTest, LetsGoOfThoseWhoLeave) {
  Start(/*step_us=*/200);
  std::vector<std::shared_ptr<StringClient>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(
        Chat(Printf(R"("max_tokens": 3000, "ignore_eos": true, "stream": %s, "n": %d)",
                    i % 3 == 0 ? "false" : "true", 1 + i % 2)));
  }
  for (size_t i = 0; i < clients.size(); i += 3) ASSERT_EQ(clients[i]->bytes(), "");
  ASSERT_TRUE(clients[1]->WaitFor(": accepted"));
  // Some are read, some wait, some are not even parsed: those leave once they are.
  for (int i = 0; i < 200; ++i) {
    for (const auto& client : clients) client->Leave();
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_TRUE(WaitUntilIdle());
  EXPECT_TRUE(service_->WaitUntilDone(milliseconds(5000)));
}

TEST_F(TurnServiceTest, SaysTheNumbersOfAContextThatIsTooLong) {
  Start();
  const auto client = Chat(R"("max_tokens": 4096)");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 400);
  const Json error = *ParseJson(client->bytes())->Find("error");
  EXPECT_EQ(*error.Find("code")->string(), "context_length_exceeded");
  EXPECT_NE(error.Find("message")->string()->find("4096 tokens"), std::string::npos);
}

TEST_F(TurnServiceTest, RefusesWithAComputedRetryAfterWhenTheQueueIsFull) {
  EngineOptions options;
  options.admission.max_requests = 4;
  options.scheduler.max_sequences = 1;
  Start(/*step_us=*/2000, {}, options);
  std::vector<std::shared_ptr<StringClient>> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(Chat(R"("max_tokens": 40, "ignore_eos": true)"));
  int refused = 0;
  for (const auto& client : clients) {
    ASSERT_TRUE(client->WaitForEnd());
    if (client->status() == 200) continue;
    EXPECT_EQ(client->status(), 429) << client->bytes();
    EXPECT_GE(client->header("retry-after"), "1");
    ++refused;
  }
  EXPECT_GE(refused, 6);
  EXPECT_LE(refused, 11);
}

TEST_F(TurnServiceTest, EndsStreamsWithAnErrorWhenTheEngineDrains) {
  Start(/*step_us=*/1000);
  const auto stream = Chat(R"("max_tokens": 3000, "ignore_eos": true, "stream": true)");
  const auto whole = Chat(R"("max_tokens": 3000, "ignore_eos": true)");
  ASSERT_TRUE(stream->WaitFor(": accepted"));
  while (engine_->snapshot()->num_admitted < 2) std::this_thread::yield();
  engine_->Drain(1000);
  ASSERT_TRUE(stream->WaitForEnd() && whole->WaitForEnd());
  EXPECT_NE(stream->bytes().find("shutting down"), std::string::npos);
  EXPECT_EQ(stream->bytes().find("[DONE]"), std::string::npos) << "it is not whole";
  EXPECT_EQ(whole->status(), 503);
  const auto late = Chat(R"("max_tokens": 3)");
  ASSERT_TRUE(late->WaitForEnd());
  EXPECT_EQ(late->status(), 503) << late->bytes();
}

TEST_F(TurnServiceTest, GivesSignsOfLife) {
  ServiceOptions options;
  options.ping_every = milliseconds(1);
  Start(/*step_us=*/300'000, options);
  const auto stream = Chat(R"("max_tokens": 30, "ignore_eos": true, "stream": true)");
  EXPECT_TRUE(stream->WaitFor(": accepted\n"));
  EXPECT_TRUE(stream->WaitFor(": ping\n"));
  stream->Leave();
  EXPECT_TRUE(WaitUntilIdle());
}

TEST_F(TurnServiceTest, TellsHowFarAPromptIsToThoseWhoAsk) {
  EngineOptions options;
  options.scheduler.max_step_tokens = 64;
  Start(/*step_us=*/100'000, {}, options);
  const std::string body = R"({"messages": [{"role": "user", "content": ")" +
                           std::string(1000, 'x') + R"("}], "max_tokens": 2, "stream": true)";
  const auto curious = Post("/v1/chat/completions", body + R"(, "return_progress": true})");
  EXPECT_TRUE(curious->WaitFor(R"("choices":[],"prompt_progress":{"total":)"));
  ASSERT_TRUE(curious->WaitForEnd());
  EXPECT_NE(curious->bytes().find("data: [DONE]"), std::string::npos);
  const auto other = Post("/v1/chat/completions", body + R"(, "cache_salt": "s"})");
  ASSERT_TRUE(other->WaitForEnd());
  EXPECT_EQ(other->bytes().find("prompt_progress"), std::string::npos);
}

TEST_F(TurnServiceTest, TellsItsObserverWhatBecameOfEachRequest) {
  Heard heard;
  ServiceOptions options;
  options.observer = &heard;
  Start(/*step_us=*/500, options);
  ASSERT_TRUE(Chat(R"("max_tokens": 9, "ignore_eos": true, "n": 2)")->WaitForEnd());
  ASSERT_TRUE(Chat(R"("max_tokens": 0)")->WaitForEnd());
  ASSERT_TRUE(service_->WaitUntilDone(milliseconds(5000)));
  service_.reset();  // joins those who tell
  ASSERT_EQ(heard.outcomes.size(), 2u);
  // The client may hear of the end before the observer does.
  if (heard.outcomes[0].status == 400) std::swap(heard.outcomes[0], heard.outcomes[1]);
  EXPECT_EQ(heard.outcomes[0].status, 200);
  ASSERT_EQ(heard.outcomes[0].records.size(), 2u);
  EXPECT_EQ(heard.outcomes[0].records[0].num_generated, 9);
  EXPECT_EQ(heard.outcomes[1].status, 400);
  EXPECT_TRUE(heard.outcomes[1].records.empty());
}

TEST_F(TurnServiceTest, DocumentsEveryRouteAndAsksForAKeyOnAllButHealth) {
  Start();
  AddHealthRoutes(*engine_, router_);
  AddFrontPage(router_);
  const std::vector<Endpoint> endpoints = Endpoints();
  for (const Route& route : router_.routes()) {
    HttpRequest request;
    request.method = route.method;
    request.path = route.pattern;
    request.headers = {{"host", "localhost"}, {"content-type", "application/json"}};
    const auto refusal = Guard(request, route.auth, {.needs_key = true}, nullptr);
    const bool is_public = route.pattern == "/livez" || route.pattern == "/readyz" ||
                           route.pattern == "/" || route.pattern == "/ui/{file}";
    EXPECT_EQ(refusal.has_value(), !is_public) << route.pattern;
    const auto described = std::find_if(endpoints.begin(), endpoints.end(), [&](const Endpoint& e) {
      return e.method == route.method && e.path == route.pattern && e.auth == route.auth;
    });
    auto client = std::make_shared<StringClient>();
    if (described != endpoints.end()) continue;
    route.handler({}, client);
    EXPECT_EQ(client->status(), 501) << route.pattern << " is on no page";
  }
}

}  // namespace
}  // namespace hearth
