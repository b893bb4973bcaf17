// SPDX-License-Identifier: Apache-2.0
// Anthropic's dialect without a server: bodies read, refusals by name, streams equal to wholes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/dialects/messages/anthropic_request.h"
#include "server/dialects/messages/anthropic_writer.h"
#include "server/turns/volatile_text.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;
using ::testing::HasSubstr;

ApiResult<MessagesRequest> Read(const std::string& members, const std::string& messages = "") {
  const std::string said = messages.empty() ? R"([{"role": "user", "content": "hi"}])" : messages;
  const std::string text = R"({"model": "m", "max_tokens": 9, "messages": )" + said + members + "}";
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return ReadMessagesRequest(*json, false);
}

MessagesRequest MustRead(const std::string& members, const std::string& messages = "") {
  auto read = Read(members, messages);
  if (!read.ok()) ADD_FAILURE() << read.error().message;
  return *std::move(read);
}

std::string ParamOf(const std::string& members, const std::string& messages = "") {
  const auto read = Read(members, messages);
  return read.ok() ? "" : read.error().param;
}

TEST(MessagesFields, AreInOrderAndSaid) {
  const auto table = MessagesFields();
  for (size_t i = 1; i < table.size(); ++i) EXPECT_LT(table[i - 1].name, table[i].name);
  for (const Field& field : table) EXPECT_FALSE(field.doc.empty()) << field.name;
}

TEST(MessagesRequest, ReadsSettings) {
  const MessagesRequest read = MustRead(R"(, "temperature": 0.5, "top_k": 7, "stream": true,
      "stop_sequences": ["a", "b"], "thinking": {"type": "enabled", "budget_tokens": 64},
      "output_config": {"effort": "high"}, "metadata": {"user_id": "x"}, "seed": 3)");
  EXPECT_EQ(read.turn.sampling.temperature, 0.5f);
  EXPECT_EQ(read.turn.sampling.top_k, 7);
  EXPECT_TRUE(read.turn.streams && read.turn.has_seed && read.shows_thinking);
  EXPECT_EQ(read.turn.max_tokens, 9);
  EXPECT_EQ(read.turn.reasoning_tokens, 64);
  EXPECT_EQ(read.turn.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.turn.conversation.reasoning_effort, ReasoningEffort::kHigh);
  EXPECT_FALSE(MustRead("").shows_thinking);
  EXPECT_EQ(MustRead(R"(, "thinking": {"type": "disabled"})").turn.reasoning_tokens, 0);
}

TEST(MessagesRequest, ReadsToolsAndResults) {
  const std::string messages = R"([
      {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
      {"role": "assistant", "content": [
         {"type": "thinking", "thinking": "hm", "signature": "s"},
         {"type": "text", "text": "let me see"},
         {"type": "tool_use", "id": "t1", "name": "get", "input": {"city": "Rome"}}]},
      {"role": "user", "content": [
         {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "hot"}]},
         {"type": "text", "text": "and?"}]}])";
  const MessagesRequest read = MustRead(R"(, "system": "be kind",
      "tools": [{"name": "get", "description": "d", "input_schema": {"type": "object"}}],
      "tool_choice": {"type": "tool", "name": "get", "disable_parallel_tool_use": true})",
                                        messages);
  const auto& said = read.turn.conversation.messages;
  ASSERT_EQ(said.size(), 5u);
  EXPECT_EQ(said[0].role, Role::kSystem);
  EXPECT_EQ(said[2].reasoning, "hm");
  EXPECT_EQ(said[2].content, "let me see");
  ASSERT_EQ(said[2].tool_calls.size(), 1u);
  EXPECT_EQ(said[2].tool_calls[0].arguments, R"({"city":"Rome"})");
  EXPECT_EQ(said[3].role, Role::kTool);
  EXPECT_EQ(said[3].content, "hot");
  EXPECT_EQ(said[3].name, "get");
  EXPECT_EQ(said[4].content, "and?");
  EXPECT_EQ(read.turn.tool_choice, ToolChoice::kNamed);
  EXPECT_FALSE(read.turn.parallel_calls);
}

// A client's block of its own joins to the next one.
TEST(MessagesRequest, LeavesOutWhatChangesEveryTime) {
  MessagesRequest read = MustRead(R"(, "system": [
      {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=a1b2c;"},
      {"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}])");
  EXPECT_EQ(NeutraliseVolatile(Neutralise::kHeaders, read.turn.conversation), "billing-header");
  EXPECT_EQ(read.turn.conversation.messages[0].content, "be kind");
}

TEST(MessagesRequest, RefusesByName) {
  EXPECT_THAT(ParamOf(R"(, "temperatur": 1)"), HasSubstr("temperatur"));
  EXPECT_EQ(ParamOf(R"(, "container": "c")"), "container");
  EXPECT_EQ(ParamOf(R"(, "mcp_servers": [])"), "");
  EXPECT_EQ(ParamOf(R"(, "stop_sequences": [1])"), "stop_sequences");
  EXPECT_EQ(ParamOf(R"(, "thinking": {"type": "enabled"})"), "thinking.budget_tokens");
  EXPECT_EQ(ParamOf(R"(, "tool_choice": {"type": "any"})"), "tool_choice");
  EXPECT_EQ(ParamOf(R"(, "tools": [{"type": "web_search_20250305", "name": "w"}])"),
            "tools[0].type");
  EXPECT_EQ(ParamOf(R"(, "tools": [{"name": "a b", "input_schema": {}}])"),
            "tools[0].function.name");
  EXPECT_EQ(ParamOf("", R"([{"role": "robot", "content": "x"}])"), "messages[0].role");
  EXPECT_EQ(ParamOf("", R"([{"role": "user", "content": [{"type": "image"}]}])"),
            "messages[0].content[0].type");
  EXPECT_EQ(ParamOf("", R"([{"role": "user", "content": "x"},
                            {"role": "assistant", "content": "y"}])"),
            "")
      << "it is continued";
  EXPECT_THAT(ParamOf("", R"([{"role": "user", "content": "x"}, {"role": "user", "content": [
                            {"type": "tool_result", "tool_use_id": "none", "content": "y"}]}])"),
              HasSubstr("messages[1].content[0]"));
}

// The data of every event, checking that its name is its type.
std::vector<Json> EventsOf(const std::string& stream) {
  std::vector<Json> events;
  size_t at = 0;
  while (at < stream.size()) {
    const size_t end = stream.find("\n\n", at), line = stream.find('\n', at);
    EXPECT_EQ(stream.substr(at, 7), "event: ");
    EXPECT_EQ(stream.substr(line + 1, 6), "data: ");
    Result<Json> json = ParseJson(stream.substr(line + 7, end - line - 7));
    EXPECT_TRUE(json.ok());
    EXPECT_EQ(*json->Find("type")->string(), stream.substr(at + 7, line - at - 7));
    events.push_back(*json);
    at = end + 2;
  }
  return events;
}

const std::vector<Delta> kReply{
    {Kind::kReasoning, "hm", 0, {}},  {Kind::kReasoning, "m", 0, {}},
    {Kind::kContent, "Let", 0, {}},   {Kind::kContent, " me", 0, {}},
    {Kind::kToolCall, "get", 0, {}},  {Kind::kToolArguments, "{\"a\"", 0, {}},
    {Kind::kToolArguments, ":1}", 0}, {Kind::kToolCallEnd, "", 0, {}},
    {Kind::kToolCall, "put", 1, {}},  {Kind::kToolCallEnd, "", 1, {}}};
const TurnUsage kUsage{
    .prompt_tokens = 100, .completion_tokens = 20, .cached_tokens = 64, .reasoning_tokens = 2};

// What an SDK makes of the events.
Json Accumulate(const std::vector<Json>& events) {
  Json message;
  std::string arguments;
  for (const Json& event : events) {
    const std::string& type = *event.Find("type")->string();
    if (type == "message_start") message = *event.Find("message");
    JsonArray* content = nullptr;
    for (auto& [name, value] : *message.object()) {
      if (name == "content") content = value.array();
      if (type == "message_delta" && event.Find("delta")->Find(name) != nullptr) {
        value = *event.Find("delta")->Find(name);
      }
      if (type != "message_delta" || name != "usage") continue;
      for (auto& [count, tokens] : *value.object()) {
        if (const Json* now = event.Find("usage")->Find(count)) tokens = *now;
      }
    }
    if (type == "content_block_start") {
      EXPECT_EQ(event.Find("index")->integer(), static_cast<int64_t>(content->size()));
      content->push_back(*event.Find("content_block"));
      arguments.clear();
    }
    if (type == "content_block_delta") {
      const Json& delta = *event.Find("delta");
      for (auto& [name, value] : *content->back().object()) {
        const Json* more = delta.Find(name);
        if (more != nullptr && name != "type") value = *value.string() + *more->string();
        if (name != "input" || delta.Find("partial_json") == nullptr) continue;
        arguments += *delta.Find("partial_json")->string();
        if (Result<Json> whole = ParseJson(arguments); whole.ok()) value = *whole;
      }
    }
  }
  return message;
}

TEST(MessagesWriter, StreamsWhatItWouldSendWhole) {
  for (const bool shows : {true, false}) {
    MessagesWriter writer({"abc", "m", "f", 1, 100}, shows);
    std::string stream = writer.Begin();
    for (const Delta& delta : kReply) stream += writer.Add(0, delta);
    stream += writer.EndChoice(0, {ChoiceEnd::Why::kToolCalls, ""});
    stream += writer.End(kUsage);
    const std::vector<Json> events = EventsOf(stream);
    EXPECT_EQ(*events.back().Find("type")->string(), "message_stop");
    const Json whole = *ParseJson(writer.Whole(kUsage));
    EXPECT_EQ(WriteJson(Accumulate(events)), WriteJson(whole));
    EXPECT_EQ(whole.Find("content")->array()->size(), shows ? 4u : 3u);
    EXPECT_EQ(*whole.Find("stop_reason")->string(), "tool_use");
    EXPECT_EQ(whole.Find("usage")->Find("input_tokens")->integer(), 36);
    EXPECT_EQ(whole.Find("usage")->Find("cache_read_input_tokens")->integer(), 64);
  }
}

TEST(MessagesWriter, SaysWhichStopStringEndedIt) {
  MessagesWriter writer({"abc", "m", "f", 1, 1}, false);
  writer.Begin();
  writer.Add(0, {Kind::kContent, "x", 0, {}});
  writer.EndChoice(0, {ChoiceEnd::Why::kStopString, "END"});
  const Json whole = *ParseJson(writer.Whole({}));
  EXPECT_EQ(*whole.Find("stop_reason")->string(), "stop_sequence");
  EXPECT_EQ(*whole.Find("stop_sequence")->string(), "END");
}

TEST(MessagesWriter, DoesNotPassOffHalfACallAsWhole) {
  MessagesWriter writer({"abc", "m", "f", 1, 1}, false);
  writer.Add(0, {Kind::kToolCall, "get", 0, {}});
  writer.Add(0, {Kind::kToolArguments, "{\"a\": ", 0, {}});
  writer.EndChoice(0, {ChoiceEnd::Why::kLength, ""});
  const std::string whole = writer.Whole({});
  EXPECT_THAT(whole, HasSubstr(R"("input":{"_incomplete":"{\"a\": "})"));
  EXPECT_THAT(whole, HasSubstr("max_tokens"));
}

TEST(AnthropicError, SaysThatNoThreadIsKept) {
  const Json create = *ParseJson(
      R"({"max_tokens":1,"messages":[{"role":"user","content":"x"}],"thread":{"type":"create"}})");
  EXPECT_TRUE(ReadMessagesRequest(create, false).ok());
  const Json resumed = *ParseJson(
      R"({"max_tokens":1,"messages":[{"role":"user","content":"x"}],
          "thread":{"type":"continue","previous_message_id":"msg_1"}})");
  const auto read = ReadMessagesRequest(resumed, false);
  ASSERT_FALSE(read.ok());
  ApiError error = read.error();
  EXPECT_EQ(error.status, 404);
  error.request_id = "7";
  EXPECT_THAT(WriteJson(AnthropicError(error)),
              HasSubstr(R"("details":{"error_code":"thread_not_found"}},"request_id":"7")"));
}

TEST(AnthropicError, NamesItsKind) {
  ApiError error;
  error.message = "why";
  for (const auto& [status, type] : {std::pair(400, "invalid_request_error"),
                                     {404, "not_found_error"},
                                     {429, "rate_limit_error"},
                                     {503, "overloaded_error"},
                                     {500, "api_error"}}) {
    error.status = status;
    EXPECT_EQ(*AnthropicError(error).Find("error")->Find("type")->string(), type);
  }
  error.code = "context_length_exceeded";
  EXPECT_THAT(WriteJson(AnthropicError(error)), HasSubstr("prompt is too long: why"));
}

}  // namespace
}  // namespace hearth
