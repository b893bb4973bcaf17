// SPDX-License-Identifier: Apache-2.0
#include "talk/chat_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth {
namespace {

std::string Event(const std::string& json) { return "data: " + json + "\n\n"; }
std::string Delta(const std::string& delta) {
  return Event(R"({"choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":null}]})");
}
std::string End(const std::string& reason) {
  return Event(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + reason + R"("}]})") +
         Event(R"({"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":7,)"
               R"("prompt_tokens_details":{"cached_tokens":16}}})") +
         "data: [DONE]\n\n";
}

// A reader, and what it told.
struct Heard {
  explicit Heard(TalkSettings settings = {}) : reader(settings) {}
  Status Feed(std::string_view bytes) {
    return reader.Feed(bytes, [this](ReplyEvent::Kind kind, const std::string& text) {
      told += std::to_string(static_cast<int>(kind)) + ":" + text + "|";
    });
  }
  ChatStreamReader reader;
  std::string told;
};

TEST(ChatStream, ReadsAReplyHoweverItIsCut) {
  const std::string stream = ": ping\n\n" + Delta(R"({"role":"assistant","content":""})") +
                             Delta(R"({"reasoning":"hm","reasoning_content":"hm"})") +
                             Delta(R"({"content":"Hel"})") + Delta(R"({"content":"lo 世"})") +
                             End("stop");
  for (size_t size : {size_t{1}, size_t{7}, stream.size()}) {
    Heard heard;
    for (size_t at = 0; at < stream.size(); at += size) {
      ASSERT_TRUE(heard.Feed(std::string_view(stream).substr(at, size)).ok());
    }
    EXPECT_EQ(heard.told, "0:hm|1:Hel|1:lo 世|");
    Result<TurnResult> result = heard.reader.Finish();
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->end, TurnEnd::kStop);
    EXPECT_EQ(result->message.content, "Hello 世");
    EXPECT_EQ(result->message.reasoning, "hm");
    EXPECT_EQ(result->figures.num_prompt, 20);
    EXPECT_EQ(result->figures.num_cached, 16);
    EXPECT_EQ(result->figures.num_generated, 7);
  }
}

TEST(ChatStream, ToolCalls) {
  Heard heard;
  ASSERT_TRUE(heard
                  .Feed(Delta(R"({"tool_calls":[{"index":0,"id":"c1","function":)"
                              R"({"name":"f","arguments":""}}]})") +
                        Delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})") +
                        Delta(R"({"tool_calls":[{"index":1,"id":"c2","function":)"
                              R"({"name":"g","arguments":"[]"}}]})") +
                        End("tool_calls"))
                  .ok());
  EXPECT_EQ(heard.told, "2:f|3:{}|4:|2:g|3:[]|");
  Result<TurnResult> result = heard.reader.Finish();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->message.tool_calls.size(), 2u);
  EXPECT_EQ(result->message.tool_calls[0].id, "c1");
  EXPECT_EQ(result->message.tool_calls[1].arguments, "[]");
}

TEST(ChatStream, WhyAReplyIsCut) {
  TalkSettings seven;
  seven.max_tokens = 7;
  Heard bounded(seven), full;
  ASSERT_TRUE(bounded.Feed(End("length")).ok());
  ASSERT_TRUE(full.Feed(End("length")).ok());
  EXPECT_EQ(bounded.reader.Finish()->end, TurnEnd::kLength);
  EXPECT_EQ(full.reader.Finish()->end, TurnEnd::kContext);
}

TEST(ChatStream, AStreamThatBreaksOffIsNoReply) {
  Heard heard;
  ASSERT_TRUE(heard.Feed(Delta(R"({"content":"Hel"})")).ok());
  EXPECT_EQ(heard.reader.Finish().status().code(), Code::kIo);
  EXPECT_EQ(heard.reader.Stopped().message.content, "Hel");
  EXPECT_EQ(heard.reader.Stopped().end, TurnEnd::kInterrupted);
}

TEST(ChatStream, ErrorsInTheStreamAndNonsenseEndIt) {
  Heard error, nonsense, kinds;
  const Status told = error.Feed(Event(R"({"error":{"message":"out of \u001b[2J luck"}})"));
  EXPECT_EQ(told.message(), "out of \\x1b[2J luck");
  EXPECT_FALSE(nonsense.Feed("data: {oops\n\n").ok());
  EXPECT_TRUE(kinds
                  .Feed(Event(R"({"choices":7,"usage":[]})") + Event("[]") +
                        Event(R"({"choices":[{"delta":{"content":3,"tool_calls":{}}}]})"))
                  .ok());
  EXPECT_EQ(kinds.told, "");
  Heard endless;
  EXPECT_EQ(endless.Feed("data: " + std::string(size_t{5} << 20, 'x')).code(), Code::kCorrupt);
}

TEST(ChatStream, TheBodyHoldsOnlyWhatWasSet) {
  Conversation conversation;
  conversation.messages.emplace_back();
  conversation.messages[0].content = "hi";
  EXPECT_EQ(WriteJson(ChatRequestBody("m", conversation, {}, nullptr)),
            R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,)"
            R"("stream_options":{"include_usage":true}})");
  TalkSettings settings;
  settings.temperature = 0.2;
  settings.top_k = 4;
  settings.seed = 9;
  settings.max_tokens = 3;
  settings.effort = ReasoningEffort::kLow;
  const Json schema = JsonObject{{"type", "object"}};
  const Json body = ChatRequestBody("m", conversation, settings, &schema);
  EXPECT_EQ(*body.Find("temperature"), Json(0.2));
  EXPECT_EQ(*body.Find("top_k"), Json(4));
  EXPECT_EQ(*body.Find("seed"), Json(9));
  EXPECT_EQ(*body.Find("max_tokens"), Json(3));
  EXPECT_EQ(*body.Find("reasoning_effort"), Json("low"));
  EXPECT_EQ(*body.Find("response_format")->Find("json_schema")->Find("schema"), schema);
}

TEST(ChatStream, ErrorMessages) {
  EXPECT_EQ(ErrorMessage(400, R"({"error":{"message":"no such field"}})"), "no such field");
  EXPECT_EQ(ErrorMessage(502, "<html>"), "the server answered with HTTP 502");
}

}  // namespace
}  // namespace hearth
