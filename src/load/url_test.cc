// SPDX-License-Identifier: Apache-2.0
// The client of servers: what it asks, what it understands, and a server of ours that answers it.
#include "load/url.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "base/mutex.h"
#include "http/http_server.h"
#include "load/run.h"
namespace hearth {
namespace {

TEST(EventLines, DoNotDependOnTheCut) {
  const std::string all =
      ": hello\r\ndata: {\"a\":1}\r\n\r\nevent: x\ndata:two\n\ndata: [DONE]\n\n";
  const std::vector<std::string> wanted = {"{\"a\":1}", "two", "[DONE]"};
  for (size_t size = 1; size <= all.size(); ++size) {
    EventLines lines;
    std::vector<std::string> got;
    for (size_t at = 0; at < all.size(); at += size) {
      for (std::string& line : lines.Feed(std::string_view(all).substr(at, size))) {
        got.push_back(std::move(line));
      }
    }
    EXPECT_EQ(got, wanted) << "pieces of " << size;
  }
}

TEST(UrlEvent, ReadsBothKindsUsageAndErrors) {
  EXPECT_EQ(ReadUrlEvent(R"({"choices":[{"text":"ab"}]})").text, "ab");
  EXPECT_EQ(ReadUrlEvent(R"({"choices":[{"delta":{"content":"c"}}]})").text, "c");
  EXPECT_EQ(ReadUrlEvent(R"({"choices":[{"delta":{"reasoning_content":"d"}}]})").text, "d");
  EXPECT_EQ(ReadUrlEvent(R"({"choices":[{"delta":{"role":"assistant","content":null}}]})").text,
            "");
  const UrlEvent usage =
      ReadUrlEvent(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,)"
                   R"("prompt_tokens_details":{"cached_tokens":4}}})");
  EXPECT_EQ(usage.num_prompt, 7);
  EXPECT_EQ(usage.num_generated, 3);
  EXPECT_EQ(usage.num_cached, 4);
  EXPECT_EQ(usage.problem, "");
  EXPECT_NE(ReadUrlEvent(R"({"error":{"message":"full"}})").problem.find("full"),
            std::string::npos);
  EXPECT_EQ(ReadUrlEvent("[DONE]").problem, "");
  EXPECT_NE(ReadUrlEvent("{").problem, "");
}

LoadRequest SomeRequest() {
  LoadRequest request;
  request.prompt = {5, 6, 7, 8};
  request.turns = {{LoadTurn::Kind::kPreamble, {5}, ""},
                   {LoadTurn::Kind::kQuestion, {6, 7}, ""},
                   {LoadTurn::Kind::kAnswer, {0}, "Yes."},
                   {LoadTurn::Kind::kQuestion, {8}, ""}};
  request.max_tokens = 9;
  return request;
}

TEST(UrlBody, SpeaksWordsToChatsAndIdsToCompletions) {
  UrlOptions options;
  options.model = "m";
  const Json chat = UrlBody(options, SomeRequest());
  const JsonArray& messages = *chat.Find("messages")->array();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(*messages[0].Find("role")->string(), "system");
  EXPECT_EQ(*messages[1].Find("role")->string(), "user");
  EXPECT_EQ(*messages[2].Find("role")->string(), "assistant");
  EXPECT_EQ(*messages[2].Find("content")->string(), "Yes.") << "answers go back as they came";
  EXPECT_EQ(*chat.Find("model")->string(), "m");
  EXPECT_EQ(chat.Find("max_tokens")->integer(), 9);
  EXPECT_EQ(*chat.Find("stream")->boolean(), true);
  options.is_chat = false;
  EXPECT_NE(UrlBody(options, SomeRequest()).Find("prompt")->string()->find("Yes."),
            std::string::npos);
  options.vocab_size = 100;
  EXPECT_EQ(*UrlBody(options, SomeRequest()).Find("prompt"), Json(JsonArray{5, 6, 7, 8}));
  options.is_chat = true;
  EXPECT_EQ(MakeUrlTarget(options).status().code(), Code::kInvalid);
  options.url = "localhost:80";
  EXPECT_EQ(MakeUrlTarget(options).status().code(), Code::kInvalid);
}

// Says as many words as it is asked for, one event each; "max_tokens": 429 is refused, and one of
// more than a thousand never ends.
class Parrot {
 public:
  Parrot() {
    Router router;
    const auto answer = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      Answer(request, *reply);
      const MutexLock lock(mutex_);
      replies_.push_back(std::move(reply));
    };
    router.Add("POST", "/v1/completions", Auth::kPublic, answer);
    router.Add("POST", "/v1/chat/completions", Auth::kPublic, answer);
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Listen({}, std::move(router));
    EXPECT_TRUE(server.ok()) << server.status().message();
    if (server.ok()) server_ = *std::move(server);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()) + "/v1/"; }
  int num_gone() const { return num_gone_; }

 private:
  void Answer(const HttpRequest& request, HttpReply& reply) {
    Result<Json> body = ParseJson(request.body);
    const int64_t words = body.ok() ? body->Find("max_tokens")->integer().value_or(0) : 0;
    if (words == 429) return reply.Send(429, {}, R"({"error":"come back later"})");
    reply.OnGone([this] { ++num_gone_; });
    reply.StartStream(200, {{"content-type", "text/event-stream"}});
    const bool is_chat = body->Find("messages") != nullptr;
    for (int64_t i = 0; i < std::min<int64_t>(words, 1000); ++i) {
      reply.Write(is_chat ? "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n"
                          : "data: {\"choices\":[{\"text\":\"a \"}]}\n\n");
    }
    if (words > 1000) return;
    reply.Write(R"(data: {"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":)" +
                std::to_string(words) + "}}\n\ndata: [DONE]\n\n");
    reply.End();
  }
  Mutex mutex_;
  std::vector<std::shared_ptr<HttpReply>> replies_ HEARTH_GUARDED_BY(mutex_);
  std::atomic<int> num_gone_ = 0;
  std::unique_ptr<HttpServer> server_;
};

class UrlTargetTest : public ::testing::Test {
 protected:
  std::unique_ptr<LoadTarget> Target(bool is_chat) {
    UrlOptions options;
    options.url = parrot_.url();
    options.is_chat = is_chat;
    Result<std::unique_ptr<LoadTarget>> target = MakeUrlTarget(options);
    EXPECT_TRUE(target.ok()) << target.status().message();
    return *std::move(target);
  }
  std::shared_ptr<LoadStream> Send(LoadTarget& target, int max_tokens) {
    LoadRequest request = SomeRequest();
    request.max_tokens = max_tokens;
    auto stream = std::make_shared<LoadStream>(clock_, bell_, 4);
    EXPECT_TRUE(target.Send(std::move(request), stream).ok());
    return stream;
  }
  template <typename Holds>
  bool Eventually(const Holds& holds) {
    const double until_s = clock_.now_s() + 20;
    while (!holds() && clock_.now_s() < until_s) bell_.Wait(clock_.At(clock_.now_s() + 0.01));
    return holds();
  }
  Parrot parrot_;
  const LoadClock clock_;
  LoadBell bell_;
};

TEST_F(UrlTargetTest, HearsEveryEventAndTheUsage) {
  for (const bool is_chat : {false, true}) {
    const std::unique_ptr<LoadTarget> target = Target(is_chat);
    const std::shared_ptr<LoadStream> stream = Send(*target, 5);
    ASSERT_TRUE(Eventually([&] { return stream->has_ended(); }));
    const LoadReply reply = stream->reply();
    EXPECT_EQ(reply.problem, "");
    EXPECT_EQ(reply.heard_s.size(), 5u);
    EXPECT_EQ(reply.text, "a a a a a ");
    EXPECT_EQ(reply.num_generated, 5);
    EXPECT_EQ(reply.num_prompt, 40) << "the server counts better";
  }
}

TEST_F(UrlTargetTest, TellsRefusalsAndUnreachableServers) {
  const std::unique_ptr<LoadTarget> target = Target(true);
  const std::shared_ptr<LoadStream> refused = Send(*target, 429);
  ASSERT_TRUE(Eventually([&] { return refused->has_ended(); }));
  EXPECT_NE(refused->reply().problem.find("HTTP 429"), std::string::npos);
  EXPECT_NE(refused->reply().problem.find("come back later"), std::string::npos);
  UrlOptions nowhere;
  nowhere.url = "http://127.0.0.1:1";
  Result<std::unique_ptr<LoadTarget>> dead = MakeUrlTarget(nowhere);
  ASSERT_TRUE(dead.ok());
  const std::shared_ptr<LoadStream> lost = Send(**dead, 5);
  ASSERT_TRUE(Eventually([&] { return lost->has_ended(); }));
  EXPECT_NE(lost->reply().problem, "");
}

TEST_F(UrlTargetTest, ACancelHangsUp) {
  const std::unique_ptr<LoadTarget> target = Target(false);
  const std::shared_ptr<LoadStream> stream = Send(*target, 1001);
  ASSERT_TRUE(Eventually([&] { return stream->num_heard() == 1000; }));
  EXPECT_FALSE(stream->has_ended());
  target->Cancel(*stream);
  ASSERT_TRUE(Eventually([&] { return stream->has_ended(); }));
  EXPECT_EQ(stream->reply().problem, "cancelled");
  EXPECT_TRUE(Eventually([&] { return parrot_.num_gone() == 1; })) << "the server noticed";
}

TEST_F(UrlTargetTest, PlaysChats) {
  const std::unique_ptr<LoadTarget> target = Target(true);
  LoadOptions options;
  options.clients = 3;
  options.chats = 6;
  options.turns = 2;
  options.answer_tokens = 20;
  const LoadRecord record = RunLoad(*target, options, clock_, bell_);
  EXPECT_EQ(record.replies.size(), 12u);
  for (const LoadReply& reply : record.replies) EXPECT_EQ(reply.problem, "");
}

}  // namespace
}  // namespace hearth
