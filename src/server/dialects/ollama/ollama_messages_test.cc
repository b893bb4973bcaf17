// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

Conversation Read(const std::string& messages, const std::string& tools = "null") {
  const Json read = *ParseJson(messages), given = *ParseJson(tools);
  auto conversation = ReadOllamaMessages(*read.array(), given.is_null() ? nullptr : &given);
  EXPECT_TRUE(conversation.ok()) << (conversation.ok() ? "" : conversation.error().message);
  return conversation.ok() ? *std::move(conversation) : Conversation();
}

std::string Refusal(const std::string& messages) {
  const Json read = *ParseJson(messages);
  auto conversation = ReadOllamaMessages(*read.array(), nullptr);
  EXPECT_FALSE(conversation.ok()) << messages;
  if (conversation.ok()) return "";
  EXPECT_EQ(conversation.error().status, 400);
  return conversation.error().message;
}

// An assistant with two calls, as Ollama's clients send them back, before more messages.
std::string AfterCalls(const std::string& more) {
  return R"([{"role": "user", "content": "weather?"},
    {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
      {"function": {"name": "get", "arguments": {"city": "Visby"}}},
      {"function": {"name": "put", "arguments": {}}}]},)" +
         more + "]";
}

TEST(OllamaMessages, AreAConversation) {
  const Conversation read = Read(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
          {"role": "assistant", "content": "Hello.", "thinking": "greet"},
          {"role": "user", "content": "again", "images": []}])",
      R"([{"type": "function", "function": {"name": "f", "description": "d",
           "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}}])");
  ASSERT_EQ(read.messages.size(), 4u);
  EXPECT_EQ(read.messages[0].role, Role::kSystem);
  EXPECT_EQ(read.messages[2].content, "Hello.");
  EXPECT_EQ(read.messages[2].reasoning, "greet");
  EXPECT_EQ(read.messages[3].content, "again");
  ASSERT_EQ(read.tools.size(), 1u);
  EXPECT_EQ(read.tools[0].name, "f");
}

TEST(OllamaMessages, MayLackTheirContent) {
  const Conversation read = Read(R"([{"role": "user"}])");
  ASSERT_EQ(read.messages.size(), 1u);
  EXPECT_EQ(read.messages[0].content, "");
}

TEST(OllamaMessages, HaveCallsWithObjects) {
  const Conversation read =
      Read(AfterCalls(R"({"role": "tool", "tool_name": "get", "content": "sunny"})"));
  ASSERT_EQ(read.messages.size(), 3u);
  const Message& said = read.messages[1];
  EXPECT_EQ(said.reasoning, "hm");
  ASSERT_EQ(said.tool_calls.size(), 2u);
  EXPECT_EQ(said.tool_calls[0].name, "get");
  EXPECT_EQ(said.tool_calls[0].arguments, R"({"city":"Visby"})");
  EXPECT_EQ(said.tool_calls[1].arguments, "{}");
  EXPECT_NE(said.tool_calls[0].id, said.tool_calls[1].id);
}

TEST(OllamaMessages, GiveEachResultToItsCall) {
  const char* ways[] = {
      // By the tool's name, in any order; by the older member; by nothing, in order.
      R"({"role": "tool", "tool_name": "put", "content": "1"},
         {"role": "tool", "tool_name": "get", "content": "2"})",
      R"({"role": "tool", "name": "put", "content": "1"}, {"role": "tool", "content": "2"})",
  };
  for (const char* way : ways) {
    const Conversation read = Read(AfterCalls(way));
    ASSERT_EQ(read.messages.size(), 4u) << way;
    const std::vector<ToolCall>& calls = read.messages[1].tool_calls;
    EXPECT_EQ(read.messages[2].tool_call_id, calls[1].id);
    EXPECT_EQ(read.messages[2].name, "put");
    EXPECT_EQ(read.messages[3].tool_call_id, calls[0].id);
    EXPECT_EQ(read.messages[3].name, "get");
  }
}

TEST(OllamaMessages, GiveTwoResultsOfOneToolToTwoCalls) {
  const Conversation read = Read(R"([{"role": "user", "content": "q"},
    {"role": "assistant", "tool_calls": [{"function": {"name": "get", "arguments": {"n": 1}}},
                                         {"function": {"name": "get", "arguments": {"n": 2}}}]},
    {"role": "tool", "tool_name": "get", "content": "a"},
    {"role": "tool", "tool_name": "get", "content": "b"}])");
  ASSERT_EQ(read.messages.size(), 4u);
  EXPECT_EQ(read.messages[2].tool_call_id, read.messages[1].tool_calls[0].id);
  EXPECT_EQ(read.messages[3].tool_call_id, read.messages[1].tool_calls[1].id);
}

TEST(OllamaMessages, KeepTheIdsOfCalls) {
  const Conversation read = Read(R"([{"role": "user", "content": "q"},
    {"role": "assistant", "tool_calls": [{"id": "x1", "function": {"name": "a", "arguments": {}}},
                                         {"id": "x2", "function": {"name": "b", "arguments": {}}}]},
    {"role": "tool", "tool_call_id": "x2", "content": "r"}])");
  ASSERT_EQ(read.messages.size(), 3u);
  EXPECT_EQ(read.messages[1].tool_calls[1].id, "x2");
  EXPECT_EQ(read.messages[2].name, "b");
}

TEST(OllamaMessages, AreBlamedByTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([3])", "messages[0]: must be an object"},
      {R"([{"content": "x"}])", "messages[0].role: must be a string"},
      {R"([{"role": "robot", "content": "x"}])", "messages[0].role: expected"},
      {R"([{"role": "user", "content": 3}])", "messages[0].content: expected"},
      {R"([{"role": "user", "content": "x", "images": ["aGk="]}])",
       "messages[0].images: not supported"},
      {R"([{"role": "user", "content": "x", "images": "aGk="}])",
       "messages[0].images: not supported"},
      {R"([{"role": "assistant", "thinking": 1}, {"role": "user", "content": "x"}])",
       "messages[0].thinking: must be a string"},
      {R"([{"role": "assistant", "tool_calls": {}}, {"role": "user", "content": "x"}])",
       "messages[0].tool_calls: must be an array"},
      {R"([{"role": "assistant", "tool_calls": [{}]}, {"role": "user", "content": "x"}])",
       "messages[0].tool_calls[0].function: expected an object"},
      {R"([{"role": "user", "tool_calls": [{"function": {"name": "f"}}]}])",
       "messages[0].tool_calls: only assistant messages"},
      {R"([{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}])",
       "messages[1].tool_name: is missing"},
      {R"([{"role": "tool", "content": "x", "tool_call_id": "none"}])",
       "messages[0].tool_call_id: does not match"},
  };
  for (const auto& [messages, error] : cases) EXPECT_THAT(Refusal(messages), HasSubstr(error));
}

TEST(OllamaMessages, MayEndWithTheAssistants) {
  const Conversation read =
      Read(R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "I"}])");
  ASSERT_EQ(read.messages.size(), 2u);
  EXPECT_EQ(read.messages[1].role, Role::kAssistant);
  EXPECT_EQ(read.messages[1].content, "I");
}

TEST(OllamaMessages, TakeAResultThatOnlyNamesItsTool) {
  const Conversation read = Read(
      R"([{"role": "user", "content": "q"}, {"role": "tool", "tool_name": "t", "content": "r"}])");
  ASSERT_EQ(read.messages.size(), 2u);
  EXPECT_EQ(read.messages[1].name, "t");
}

}  // namespace
}  // namespace hearth
