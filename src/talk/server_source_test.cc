// SPDX-License-Identifier: Apache-2.0
// What servers answer to the one who asks for models and replies; whole chats are played in
// tests/talk.
#include "talk/server_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/one_server.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::OneServer;

const std::string kTwo =
    R"({"data":[{"id":"a","max_model_len":512},{"object":"none"},{"id":"b","max_model_len":-3}]})";
const std::string kOne = R"({"data":[{"id":"only"}]})";

std::unique_ptr<AnswererSource> SourceAt(const std::string& url, const std::string& key = "",
                                         std::optional<Json> schema = {}) {
  auto source = NewServerSource({url, key, ""}, std::move(schema));
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? *std::move(source) : nullptr;
}

std::string Event(const std::string& json) { return "data: " + json + "\n\n"; }
std::string Reply(const std::string& text) {
  return Event(R"({"choices":[{"delta":{"content":")" + text + R"("}}]})") +
         Event(R"({"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,)"
               R"("completion_tokens":2}})") +
         "data: [DONE]\n\n";
}

// One turn with the model that was opened, and what was heard of it.
struct Turn {
  explicit Turn(AnswererSource& source) : answerer(*source.Open("")) {
    conversation.messages.emplace_back().content = "hi";
  }
  Result<TurnResult> Ask() {
    return answerer->Answer(conversation, settings,
                            {[this](ReplyEvent::Kind, const std::string& text) { heard += text; },
                             [this] { interrupted = interrupted || interrupts; }},
                            interrupted);
  }
  std::unique_ptr<Answerer> answerer;
  Conversation conversation;
  TalkSettings settings;
  std::string heard;
  bool interrupts = false;  // while it waits
  std::atomic<bool> interrupted = false;
};

TEST(ServerSource, RefusesWhatIsNoUrl) {
  for (const char* url : {"", "localhost:8080", "ftp://x", "file:///etc/passwd", "HTTP//x"}) {
    const Status status = NewServerSource({url, "", ""}, {}).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << url;
    EXPECT_THAT(status.message(), HasSubstr("http://"));
  }
}

TEST(ServerSource, RefusesKeysThatWouldBecomeHeaders) {
  for (const char* key : {"a b", "a\r\nx-evil: 1", "\xc3\xa9", "\x7f"}) {
    const Status status = NewServerSource({"http://127.0.0.1:1", key, ""}, {}).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_THAT(status.message(), HasSubstr("the key contains characters"));
  }
}

TEST(ServerSource, SaysThatNobodyAnswersAndWhere) {
  // Port 1 of the loopback is nobody's; slashes and /v1 at the end mean the same server.
  for (const char* url : {"http://127.0.0.1:1", "http://127.0.0.1:1/", "http://127.0.0.1:1/v1/"}) {
    Result<std::unique_ptr<AnswererSource>> source = NewServerSource({url, "", ""}, {});
    ASSERT_TRUE(source.ok());
    const Status found = (*source)->Find("m");
    EXPECT_EQ(found.code(), Code::kIo);
    EXPECT_EQ(found.message(), "http://127.0.0.1:1: no answer; is `hearth serve` running there?");
    EXPECT_EQ((*source)->Open("m").status().message(), found.message());
  }
}

TEST(ServerSource, FindsModelsByName) {
  const OneServer server(
      {HttpAnswer(200, kTwo), HttpAnswer(200, kTwo), HttpAnswer(200, kTwo), HttpAnswer(200, kOne)});
  // Each question is a connection of its own, one after the other.
  const auto source = SourceAt(server.url(), "secret");
  Result<std::unique_ptr<Answerer>> opened = source->Open("a");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->name(), "a");
  EXPECT_EQ((*opened)->max_context(), 512);
  EXPECT_EQ((*opened)->place(), "at " + server.url());
  EXPECT_TRUE((*opened)->Check({}).ok()) << "the server will say";
  const Status missing = source->Find("c");
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(), server.url() + ": model \"c\" not found; available: a, b");
  EXPECT_THAT(source->Find("").message(), HasSubstr("name one of its models: a, b"));
  EXPECT_TRUE(source->Find("").ok()) << "the only one there is";
  EXPECT_THAT(server.questions()[0], HasSubstr("GET /v1/models HTTP/1.1\r\n"));
  EXPECT_THAT(server.questions()[0], HasSubstr("Bearer secret"));
}

TEST(ServerSource, SaysWhyThereAreNoModels) {
  const OneServer server({HttpAnswer(401, "{}"), HttpAnswer(401, "{}"),
                          HttpAnswer(500, R"({"error":{"message":"out of order"}})"),
                          HttpAnswer(200, "<html>"), HttpAnswer(200, R"({"data":3})")});
  EXPECT_THAT(SourceAt(server.url())->Find("m").message(), HasSubstr("an API key is required"));
  EXPECT_THAT(SourceAt(server.url(), "k")->Find("m").message(), HasSubstr("key was rejected"));
  const auto source = SourceAt(server.url());
  EXPECT_EQ(source->Find("m").message(), server.url() + ": out of order");
  EXPECT_FALSE(source->Find("m").ok());
  EXPECT_THAT(source->Find("m").message(), HasSubstr("expected a list of models"));
}

TEST(ServerSource, AReplyIsHeardAndCounted) {
  const OneServer server({HttpAnswer(200, kOne), HttpAnswer(200, Reply("hello"))});
  const auto source = SourceAt(server.url(), "", Json(JsonObject{{"type", "object"}}));
  Turn turn(*source);
  turn.settings.seed = 5;
  Result<TurnResult> result = turn.Ask();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(turn.heard, "hello");
  EXPECT_EQ(result->message.content, "hello");
  EXPECT_EQ(result->figures.num_prompt, 9);
  EXPECT_EQ(result->figures.num_generated, 2);
  EXPECT_GT(result->figures.total_s, 0);
  const std::string asked = server.questions()[1];
  EXPECT_THAT(asked, HasSubstr("POST /v1/chat/completions HTTP/1.1\r\n"));
  EXPECT_THAT(asked, HasSubstr(R"("model":"only")"));
  EXPECT_THAT(asked, HasSubstr(R"("seed":5)"));
  EXPECT_THAT(asked, HasSubstr(R"("schema":{"type":"object"})"));
}

TEST(ServerSource, TurnsOfOneSeedDrawDifferently) {
  const OneServer server({HttpAnswer(200, kOne), HttpAnswer(200, Reply("a")),
                          HttpAnswer(200, Reply("b")), HttpAnswer(200, Reply("c"))});
  const auto source = SourceAt(server.url());
  Turn turn(*source);
  turn.settings.seed = 5;
  ASSERT_TRUE(turn.Ask().ok() && turn.Ask().ok());
  turn.settings.seed = 9;
  ASSERT_TRUE(turn.Ask().ok());
  EXPECT_THAT(server.questions()[2], HasSubstr(R"("seed":6)"));
  EXPECT_THAT(server.questions()[3], HasSubstr(R"("seed":9)")) << "another seed begins anew";
}

TEST(ServerSource, RefusalsAndBrokenStreamsAreTold) {
  const OneServer server({HttpAnswer(200, kOne),
                          HttpAnswer(400, R"({"error":{"message":"too long"}})"),
                          HttpAnswer(200, Event(R"({"choices":[{"delta":{"content":"half"}}]})")),
                          HttpAnswer(200, "data: {oops\n\n")});
  const auto source = SourceAt(server.url());
  Turn turn(*source);
  EXPECT_THAT(turn.Ask().status().message(), HasSubstr("too long"));
  EXPECT_THAT(turn.Ask().status().message(), HasSubstr("before the reply was complete"));
  EXPECT_EQ(turn.heard, "half");
  EXPECT_FALSE(turn.Ask().ok());
}

TEST(ServerSource, AnInterruptEndsTheTurn) {
  const OneServer server({HttpAnswer(200, kOne)});  // and no reply
  const auto source = SourceAt(server.url());
  Turn turn(*source);
  turn.interrupts = true;
  Result<TurnResult> result = turn.Ask();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->end, TurnEnd::kInterrupted);
  EXPECT_EQ(result->message.content, "");
}

}  // namespace
}  // namespace hearth
