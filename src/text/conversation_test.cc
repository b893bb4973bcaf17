// SPDX-License-Identifier: Apache-2.0
#include "text/conversation.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Result<Conversation> Parse(std::string_view text) {
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status().message();
  return ParseConversation(*json);
}

TEST(Conversation, ReadsEveryKindOfMessage) {
  Result<Conversation> parsed = Parse(R"({"model":"x","reasoning_effort":"high","messages":[
      {"role":"system","content":"be brief"},
      {"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"user","name":"ann","content":"hi"},
      {"role":"assistant","content":null,"reasoning":"hm","reasoning_content":"hm","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},
        {"id":"c2","function":{"name":"g","arguments":{"y":[1,2]}}}]},
      {"role":"tool","tool_call_id":"c2","content":"ok"},
      {"role":"tool","name":"other","content":""}],
    "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":
      {"type":"object"}}},{"type":"function","function":{"name":"g"}}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Conversation& c = *parsed;
  ASSERT_EQ(c.messages.size(), 6u);
  EXPECT_EQ(c.messages[0].role, Role::kSystem);
  EXPECT_EQ(c.messages[1].content, "ab");
  EXPECT_EQ(c.messages[2].name, "ann");
  EXPECT_EQ(c.messages[3].reasoning, "hm");
  EXPECT_EQ(c.messages[3].tool_calls[0].arguments, "{\"x\": 1}");
  EXPECT_EQ(c.messages[3].tool_calls[1].arguments, "{\"y\":[1,2]}");
  EXPECT_EQ(c.messages[4].name, "g");
  EXPECT_EQ(c.messages[5].name, "other");
  ASSERT_EQ(c.tools.size(), 2u);
  EXPECT_NE(c.tools[0].parameters.object(), nullptr);
  EXPECT_TRUE(c.tools[1].parameters.is_null());
  EXPECT_EQ(c.reasoning_effort, ReasoningEffort::kHigh);
}

TEST(Conversation, AbsentEffortStaysAbsent) {
  Result<Conversation> parsed = Parse(R"({"messages":[],"tools":null,"reasoning_effort":null})");
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->reasoning_effort.has_value());
  EXPECT_TRUE(parsed->tools.empty());
}

struct Mistake {
  const char* request;
  const char* message;
};

class ConversationMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(ConversationMistake, IsRefusedByItsPath) {
  const Result<Conversation> parsed = Parse(GetParam().request);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, ConversationMistake,
    ::testing::Values(
        Mistake{"[]", "expected an object"},
        Mistake{"{}", "messages: is missing; expected an array of messages"},
        Mistake{R"({"messages":[1]})", "messages[0]: expected an object"},
        Mistake{R"({"messages":[{"role":"user","content":"a"},{"content":"a"}]})",
                "messages[1].role: expected a string"},
        Mistake{R"({"messages":[{"role":"bot","content":"a"}]})",
                "messages[0].role: expected \"system\", \"developer\", \"user\", \"assistant\" or "
                "\"tool\""},
        Mistake{R"({"messages":[{"role":"user"}]})",
                "messages[0].content: expected a string or an array of text parts"},
        Mistake{R"({"messages":[{"role":"assistant","content":7}]})",
                "messages[0].content: expected a string or an array of text parts"},
        Mistake{R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},"b"]}]})",
                "messages[0].content[1]: expected an object"},
        Mistake{
            R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
            "messages[0].content[0].type: only \"text\" parts are supported, found \"image_url\""},
        Mistake{R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
                "messages[0].content[0].text: expected a string"},
        Mistake{R"({"messages":[{"role":"user","name":"a b","content":""}]})",
                "messages[0].name: may contain only letters, digits, '_', '-' and '.'"},
        Mistake{R"({"messages":[{"role":"assistant","reasoning":"a","reasoning_content":"b"}]})",
                "messages[0].reasoning_content: differs from \"reasoning\"; send only one of them"},
        Mistake{R"({"messages":[{"role":"user","content":"","tool_calls":[]}]})",
                "messages[0].tool_calls: only assistant messages may have tool calls"},
        Mistake{R"({"messages":[{"role":"assistant","tool_calls":{}}]})",
                "messages[0].tool_calls: expected an array"},
        Mistake{R"({"messages":[{"role":"assistant","tool_calls":[{"type":"custom"}]}]})",
                "messages[0].tool_calls[0].type: expected \"function\", found \"custom\""},
        Mistake{R"({"messages":[{"role":"assistant","tool_calls":[{"function":1}]}]})",
                "messages[0].tool_calls[0].function: expected an object"},
        Mistake{R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a b"}}]}]})",
                "messages[0].tool_calls[0].function.name: must not contain spaces or control "
                "characters"},
        Mistake{R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a",
                "arguments":[1]}}]}]})",
                "messages[0].tool_calls[0].function.arguments: expected a string of JSON or an "
                "object"},
        Mistake{R"({"messages":[{"role":"tool","tool_call_id":"x","content":""}]})",
                "messages[0].tool_call_id: does not match any earlier tool call"},
        Mistake{
            R"({"messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":
                "f"}}]},{"role":"tool","tool_call_id":"x","name":"g","content":""}]})",
            "messages[1].name: differs from the name in the tool call that this message answers"},
        Mistake{R"({"messages":[],"tools":{}})", "tools: expected an array"},
        Mistake{R"({"messages":[],"tools":[{"type":"function","function":{"name":""}}]})",
                "tools[0].function.name: expected a name, found an empty string"},
        Mistake{R"({"messages":[],"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]})",
                "tools[1].function.name: another tool already has this name"},
        Mistake{R"({"messages":[],"tools":[{"function":{"name":"f","parameters":[]}}]})",
                "tools[0].function.parameters: expected a JSON schema, which is an object"},
        Mistake{R"({"messages":[],"tools":[{"function":{"name":"f","description":1}}]})",
                "tools[0].function.description: expected a string"},
        Mistake{R"({"messages":[],"reasoning_effort":"max"})",
                "reasoning_effort: expected \"low\", \"medium\" or \"high\""}));

TEST(Conversation, LongNamesAreRefused) {
  const std::string name(129, 'a');
  const Result<Conversation> parsed =
      Parse(R"({"messages":[],"tools":[{"function":{"name":")" + name + R"("}}]})");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().message(), "tools[0].function.name: must have at most 128 bytes");
}

}  // namespace
}  // namespace hearth
