// SPDX-License-Identifier: Apache-2.0
#include "text/plain_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char* const kTalk = R"({"messages": [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "get", "arguments": "{\"city\": \"Ulm\"}"}},
        {"id": "2", "type": "function", "function": {"name": "get", "arguments": "oops"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "rain"},
    {"role": "tool", "tool_call_id": "2", "content": "sun"},
    {"role": "user", "content": "Thanks"}],
    "tools": [{"type": "function", "function": {"name": "get", "description": "Two\nlines",
               "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}},
              {"type": "function", "function": {"name": "now"}}]})";

Conversation Talk() { return *ParseConversation(*ParseJson(kTalk)); }

TEST(PlainTools, EachToolIsALine) {
  const std::string text = PlainToolsText(Talk().tools);
  EXPECT_THAT(text,
              HasSubstr("\n{\"name\":\"get\",\"description\":\"Two\\nlines\",\"parameters\":"
                        "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}}"
                        "\n{\"name\":\"now\",\"parameters\":{}}\n"));
  EXPECT_THAT(text, HasSubstr("{\"name\": \"tool_name\", \"arguments\": "));
}

TEST(PlainTools, CallsAreWrittenAsTheyAreReplied) {
  EXPECT_EQ(PlainCall({"1", "get", "{\"city\":  1}"}),
            R"({"name": "get", "arguments": {"city":  1}})");
  EXPECT_EQ(PlainCall({"1", "get", ""}), R"({"name": "get", "arguments": {}})");
  EXPECT_EQ(PlainCall({"1", "g\"t", "no json"}), R"({"name": "g\"t", "arguments": "no json"})");
}

TEST(PlainTools, AConversationBecomesText) {
  const Conversation plain = WithPlainTools(Talk(), true);
  EXPECT_TRUE(plain.tools.empty());
  ASSERT_EQ(plain.messages.size(), 5u);
  EXPECT_EQ(plain.messages[0].role, Role::kSystem);
  EXPECT_EQ(plain.messages[0].content, PlainToolsText(Talk().tools));
  EXPECT_EQ(plain.messages[1].content, "Weather?");
  EXPECT_EQ(plain.messages[2].role, Role::kAssistant);
  EXPECT_TRUE(plain.messages[2].tool_calls.empty());
  EXPECT_EQ(plain.messages[2].content,
            "Let me look.\n{\"name\": \"get\", \"arguments\": {\"city\": \"Ulm\"}}\n"
            "{\"name\": \"get\", \"arguments\": \"oops\"}");
  EXPECT_EQ(plain.messages[3].role, Role::kUser);
  EXPECT_EQ(plain.messages[3].content,
            "Result of get {\"city\":\"Ulm\"}:\nrain\n\nResult of get oops:\nsun");
  EXPECT_EQ(plain.messages[4].content, "Thanks");
  EXPECT_FALSE(MentionsTools(plain));
}

TEST(PlainTools, StandWithTheInstructionsThatAreThere) {
  Conversation talk = Talk();
  talk.messages.emplace(talk.messages.begin())->role = Role::kDeveloper;
  talk.messages[0].content = "Be brief.";
  Conversation plain = WithPlainTools(talk, true);
  EXPECT_EQ(plain.messages.size(), 5u);
  EXPECT_THAT(plain.messages[0].content, StartsWith("Be brief.\n\n# Tools\n"));
  EXPECT_EQ(plain.messages[0].role, Role::kDeveloper);
  // A template that shows no system message has nowhere else.
  plain = WithPlainTools(Talk(), false);
  EXPECT_EQ(plain.messages.size(), 4u);
  EXPECT_EQ(plain.messages[0].role, Role::kUser);
  EXPECT_EQ(plain.messages[0].content, PlainToolsText(Talk().tools) + "\n\nWeather?");
}

TEST(PlainTools, AreSeenInEarlierTurnsToo) {
  Conversation talk = Talk();
  EXPECT_TRUE(MentionsTools(talk));
  talk.tools.clear();
  EXPECT_TRUE(MentionsTools(talk));
  EXPECT_EQ(WithPlainTools(talk, true).messages[0].content, "Weather?") << "there are none now";
  talk.messages.resize(1);
  EXPECT_FALSE(MentionsTools(talk));
}

// A result that is not known by an id, or whose call was long, is named by its tool alone.
TEST(PlainTools, ResultsRepeatShortCallsOnly) {
  Conversation talk;
  talk.messages.emplace_back().role = Role::kAssistant;
  talk.messages[0].tool_calls = {{"1", "f", "{\"a\": \"" + std::string(300, 'x') + "\"}"}};
  talk.messages.emplace_back().role = Role::kTool;
  talk.messages[1].name = "f";
  talk.messages[1].tool_call_id = "1";
  talk.messages[1].content = "r";
  EXPECT_EQ(WithPlainTools(talk, true).messages[1].content, "Result of f:\nr");
}

// As many results as calls, each looked up: processor seconds of one rendering.
double SecondsFor(int count) {
  Conversation conversation;
  Message& assistant = conversation.messages.emplace_back();
  assistant.role = Role::kAssistant;
  for (int i = 0; i < count; ++i) {
    assistant.tool_calls.push_back({"call_" + std::to_string(i), "f", "{}"});
  }
  for (int i = 0; i < count; ++i) {
    Message& result = conversation.messages.emplace_back();
    result.role = Role::kTool;
    result.name = "f";
    result.tool_call_id = "call_" + std::to_string(count - 1 - i);
  }
  const std::clock_t began = std::clock();
  EXPECT_EQ(WithPlainTools(conversation, true).messages.size(), 2u);
  return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
}

TEST(PlainTools, ResultsFindTheirCallsInOneLook) {
  SecondsFor(1000);
  const double once = SecondsFor(20'000), twice = SecondsFor(40'000);
  EXPECT_LT(twice, 3 * once + 0.1) << once;
}

}  // namespace
}  // namespace hearth
