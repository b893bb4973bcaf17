// SPDX-License-Identifier: Apache-2.0
// Requests that find no memory, and requests that ended processes before: they end alone.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <set>

#include "server/turns/flights.h"
#include "testing/service_rig.h"

namespace hearth {
namespace {

// Has no memory at the place that it is named after.
class FailingWriter : public ReplyWriter {
 public:
  explicit FailingWriter(std::string where) : where_(std::move(where)) {}
  std::string Begin() override { return At("begin"); }
  std::string Add(int, const Delta&) override { return At("add"); }
  std::string EndChoice(int, const ChoiceEnd&) override { return At("end choice"); }
  std::string End(const TurnUsage&) override { return At("end"); }
  std::string Fail(const ApiError& error) override {
    At("fail");
    return "failed: " + error.code;
  }
  std::string Whole(const TurnUsage&) override { return At("whole") + "{}"; }

 private:
  std::string At(const std::string& place) const {
    if (where_.find(place) != std::string::npos) throw std::bad_alloc();
    return "";
  }
  const std::string where_;
};

class FailingDialect : public Dialect {
 public:
  std::string name() const override { return "failing"; }
  std::vector<DialectRoute> routes() const override {
    return {{{.method = "POST", .path = "/fail", .auth = Auth::kKey, .summary = ""}}};
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest&) const override {
    const std::string where = *body.Find("where")->string();
    if (where == "read") throw std::bad_alloc();
    DialectTurn read;
    Message message;
    message.role = Role::kUser;
    message.content = "hi";
    read.turn.conversation.messages = {message};
    read.turn.max_tokens = 8;
    read.turn.streams = body.Find("stream") != nullptr;
    read.turn.sampling.ignores_eos = true;
    read.turn.sampling.temperature = 0;  // drawn tokens may be no text at all
    read.write = [where](const TurnRequest&, const ReplyFacts&) {
      return std::make_unique<FailingWriter>(where);
    };
    return read;
  }
};

class MemoryTest : public testing::ServiceRig {
 protected:
  void Begin() {
    Start();
    service_->AddRoutes(router_, std::make_shared<FailingDialect>());
  }
  std::shared_ptr<testing::StringClient> Fail(const std::string& where, bool streams) {
    const auto client =
        Post("/fail", R"({"where": ")" + where + (streams ? R"(", "stream": 1})" : R"("})"));
    EXPECT_TRUE(client->WaitForEnd()) << where;
    return client;
  }
};

TEST_F(MemoryTest, ARequestWithoutMemoryIsAnsweredSo) {
  Begin();
  for (const char* where : {"read", "add", "end choice"}) {
    const auto client = Fail(where, false);
    EXPECT_EQ(client->status(), 503) << where;
    EXPECT_EQ(*ParseJson(client->bytes())->Find("error")->Find("code")->string(), "out_of_memory");
    EXPECT_EQ(client->header("retry-after"), "1");
  }
  EXPECT_EQ(Fail("nowhere", false)->status(), 200) << "and others go on";
}

TEST_F(MemoryTest, AStreamThatHasBegunSaysItInItsOwnWords) {
  Begin();
  EXPECT_NE(Fail("add", true)->bytes().find("failed: out_of_memory"), std::string::npos);
  EXPECT_EQ(Fail("nowhere", true)->status(), 200);
}

TEST_F(MemoryTest, WhatCannotEvenBeToldIsCut) {
  Begin();
  for (const char* where : {"begin", "add fail", "whole", "end"}) {
    for (const bool streams : {false, true}) Fail(where, streams);
  }
  EXPECT_EQ(Fail("nowhere", true)->status(), 200);
  EXPECT_TRUE(service_->WaitUntilDone(std::chrono::milliseconds(5000)));
}

// No memory for events, and no second head.
class StarvedClient final : public testing::StringClient {
 public:
  void Send(int status, Headers headers, std::string body) override {
    EXPECT_FALSE(has_begun) << "a stream that has begun has its status";
    StringClient::Send(status, std::move(headers), std::move(body));
  }
  void StartStream(int status, Headers headers) override {
    has_begun = true;
    StringClient::StartStream(status, std::move(headers));
  }
  void Write(std::string) override { throw std::bad_alloc(); }
  std::atomic<bool> has_begun{false};
};

TEST_F(MemoryTest, WhoComesBackToAStreamAndFindsNoMemoryIsCut) {
  Begin();
  const auto job = Post("/v1/responses", R"({"input": "hi", "background": true, "stream": true,
                                             "max_output_tokens": 16})");
  ASSERT_TRUE(job->WaitForEnd());
  const size_t at = job->bytes().find("resp_");
  ASSERT_NE(at, std::string::npos);
  const std::string id = job->bytes().substr(at, job->bytes().find('"', at) - at);
  const auto client = std::make_shared<StarvedClient>();
  HttpRequest request;
  request.method = "GET";
  request.path = "/v1/responses/" + id;
  request.query = "stream=true";
  auto match = std::get<Router::Match>(router_.Find("GET", request.path));
  request.path_captures = match.captures;
  match.route->handler(std::move(request), client);
  EXPECT_TRUE(client->WaitForEnd());
  EXPECT_TRUE(client->has_begun);
  EXPECT_EQ(client->status(), 200);
}

// Keeps its flights, and refuses bodies that contain a word.
class TestBook : public FlightBook {
 public:
  class TestFlight : public Flight {
   public:
    explicit TestFlight(TestBook& book) : book_(book) { ++book_.num_flying; }
    ~TestFlight() override { --book_.num_flying; }
    void Land() override {
      if (!has_landed_.exchange(true)) ++book_.num_landed;
    }

   private:
    TestBook& book_;
    std::atomic<bool> has_landed_{false};
  };
  std::unique_ptr<Flight> Begin(std::string_view owner, std::string_view path,
                                std::string_view body) override {
    EXPECT_EQ(owner, "");  // there are no keys here
    EXPECT_EQ(path, "/v1/chat/completions");
    if (body.find("poison") != std::string_view::npos) return nullptr;
    return std::make_unique<TestFlight>(*this);
  }
  std::atomic<int> num_flying{0}, num_landed{0};
};

TEST_F(MemoryTest, RequestsAreInTheBookForAsLongAsTheyRun) {
  TestBook book;
  ServiceOptions options;
  options.flights = &book;
  Start(/*step_us=*/500, options);
  const auto stream = Chat(R"("max_tokens": 3000, "ignore_eos": true, "stream": true)");
  ASSERT_TRUE(stream->WaitFor("data: "));
  EXPECT_EQ(book.num_flying, 1);
  EXPECT_EQ(book.num_landed, 0) << "it is still under way";
  stream->Leave();
  ASSERT_TRUE(stream->WaitForEnd());
  EXPECT_EQ(book.num_landed, 1);
  ASSERT_TRUE(Chat(R"("max_tokens": 3)")->WaitForEnd());
  EXPECT_EQ(book.num_landed, 2);
  ASSERT_TRUE(Chat(R"("max_tokens": "many")")->WaitForEnd());  // a mistake is an end, too
  for (int i = 0; i < 4000 && book.num_landed < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(book.num_landed, 3);
  service_.reset();
  EXPECT_EQ(book.num_flying, 0);
}

TEST_F(MemoryTest, WhatEndedProcessesIsRefusedInTheDialectsWords) {
  TestBook book;
  ServiceOptions options;
  options.flights = &book;
  Start(0, options);
  const auto client = Chat(R"("max_tokens": 3, "user": "poison")");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 422);
  EXPECT_EQ(*ParseJson(client->bytes())->Find("error")->Find("code")->string(),
            "request_ended_server");
}

}  // namespace
}  // namespace hearth
