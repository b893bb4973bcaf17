// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/chat/chat_writer.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

const ReplyFacts kFacts{"0a1b", "m", "f", 7, 3};

std::vector<Json> Chunks(const std::string& bytes) {
  std::vector<Json> out;
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t end = bytes.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    EXPECT_EQ(bytes.substr(at, 6), "data: ");
    const std::string text = bytes.substr(at + 6, end - at - 6);
    out.push_back(text == "[DONE]" ? Json("[DONE]") : *ParseJson(text));
    at = end + 2;
  }
  return out;
}

std::string Play(ChatWriter& writer) {
  std::string bytes = writer.Begin();
  bytes += writer.Add(0, {Kind::kReasoning, "hm", 0});
  bytes += writer.Add(0, {Kind::kToolCall, "f", 0});
  bytes += writer.Add(0, {Kind::kToolArguments, "{\"a\"", 0});
  bytes += writer.Add(0, {Kind::kToolArguments, ":1}", 0});
  bytes += writer.Add(0, {Kind::kToolCallEnd, "", 0});
  bytes += writer.EndChoice(0, {ChoiceEnd::Why::kToolCalls, ""});
  return bytes + writer.End({3, 9, 1, 2});
}

TEST(ChatWriter, StreamsWhatItTellsWhole) {
  TurnRequest request;
  request.streams = request.wants_usage = true;
  ChatWriter writer(request, kFacts);
  const std::vector<Json> chunks = Chunks(Play(writer));
  ASSERT_EQ(chunks.size(), 8u);
  EXPECT_EQ(*chunks.back().string(), "[DONE]");
  const auto delta = [&](size_t i) -> const Json& {
    return *(*chunks[i].Find("choices")->array())[0].Find("delta");
  };
  EXPECT_EQ(WriteJson(delta(0)), R"({"role":"assistant","content":""})");
  EXPECT_EQ(WriteJson(delta(1)), R"({"reasoning":"hm","reasoning_content":"hm"})");
  EXPECT_EQ(WriteJson(delta(2)), R"({"tool_calls":[{"index":0,"id":"call_0a1b0000","type":)"
                                 R"("function","function":{"name":"f","arguments":""}}]})");
  EXPECT_TRUE(chunks[0].Find("usage")->is_null());
  EXPECT_EQ(WriteJson(*chunks[6].Find("usage")),
            R"({"prompt_tokens":3,"completion_tokens":9,"total_tokens":12,)"
            R"("prompt_tokens_details":{"cached_tokens":1},)"
            R"("completion_tokens_details":{"reasoning_tokens":2}})");
  const Json whole = *ParseJson(writer.Whole({3, 9, 1, 2}));
  const Json& choice = (*whole.Find("choices")->array())[0];
  EXPECT_EQ(*choice.Find("finish_reason")->string(), "tool_calls");
  const Json& message = *choice.Find("message");
  EXPECT_TRUE(message.Find("content")->is_null());
  EXPECT_EQ(*message.Find("reasoning")->string(), "hm");
  const Json& call = (*message.Find("tool_calls")->array())[0];
  EXPECT_EQ(*call.Find("id")->string(), "call_0a1b0000");
  EXPECT_EQ(*call.Find("function")->Find("arguments")->string(), R"({"a":1})");
}

TEST(ChatWriter, WritesNoEventsWhenNobodyWantsAStream) {
  ChatWriter writer({}, kFacts);
  EXPECT_EQ(Play(writer), "");
}

TEST(ChatWriter, KeepsLogprobsForAWholeReplyAlone) {
  for (const bool streams : {false, true}) {
    TurnRequest request;
    request.streams = streams;
    request.sampling.num_logprobs = 1;
    ChatWriter writer(request, kFacts);
    Delta delta{Kind::kContent, "A", 0};
    delta.logprobs.push_back({{"A", -0.5F}, {{"B", -1}}});
    std::string bytes = writer.Add(0, delta) + writer.Add(0, delta);
    const std::string entry = R"({"token":"A","logprob":-0.5,"bytes":[65],"top_logprobs":[)"
                              R"({"token":"B","logprob":-1.0,"bytes":[66]}]})";
    if (streams) {
      EXPECT_NE(bytes.find("\"content\":[" + entry + "]"), std::string::npos) << bytes;
    }
    const std::string whole = writer.Whole({});
    const std::string both = "\"content\":[" + entry + "," + entry + "]";
    EXPECT_EQ(whole.find(both) != std::string::npos, !streams) << whole;
  }
}

}  // namespace
}  // namespace hearth
