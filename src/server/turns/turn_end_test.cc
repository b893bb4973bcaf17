// SPDX-License-Identifier: Apache-2.0
// Conversations that end with the assistant's own words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

TurnRequest Ending(std::vector<Message> messages) {
  TurnRequest request;
  request.conversation.messages = std::move(messages);
  return request;
}
Message From(Role role, std::string content) {
  Message message;
  message.role = role;
  message.content = std::move(content);
  return message;
}

TEST(SettleEnd, ContinuesTheAssistantsWords) {
  TurnRequest request = Ending({From(Role::kUser, "a"), From(Role::kAssistant, "b")});
  ASSERT_TRUE(SettleEnd(request).ok());
  EXPECT_TRUE(request.conversation.continues_last);
  TurnRequest user = Ending({From(Role::kUser, "a")});
  ASSERT_TRUE(SettleEnd(user).ok());
  EXPECT_FALSE(user.conversation.continues_last);
}

TEST(SettleEnd, DoesAsTheRequestSays) {
  TurnRequest another = Ending({From(Role::kUser, "a"), From(Role::kAssistant, "b")});
  another.continues = false;
  ASSERT_TRUE(SettleEnd(another).ok());
  EXPECT_FALSE(another.conversation.continues_last);
  TurnRequest nothing = Ending({From(Role::kUser, "a")});
  nothing.continues = true;
  nothing.prompt_field = "input";
  EXPECT_EQ(SettleEnd(nothing).error().param, "input");
}

TEST(SettleEnd, AMessageThatSaysNothingIsNone) {
  TurnRequest request =
      Ending({From(Role::kUser, "a"), From(Role::kAssistant, ""), From(Role::kAssistant, "")});
  ASSERT_TRUE(SettleEnd(request).ok());
  EXPECT_EQ(request.conversation.messages.size(), 1u);
  EXPECT_FALSE(request.conversation.continues_last);
  TurnRequest empty = Ending({});
  EXPECT_TRUE(SettleEnd(empty).ok());
}

TEST(SettleEnd, CallsAndThoughtsCannotBeTheEnd) {
  TurnRequest calls = Ending({From(Role::kAssistant, "b")});
  calls.conversation.messages[0].tool_calls = {{"i", "f", "{}"}};
  EXPECT_THAT(SettleEnd(calls).error().message, HasSubstr("add the result"));
  TurnRequest thinks = Ending({From(Role::kAssistant, "")});
  thinks.conversation.messages[0].reasoning = "hm";
  EXPECT_THAT(SettleEnd(thinks).error().message, HasSubstr("no text to continue"));
}

class TurnEndTest : public testing::ServiceRig {
 protected:
  // What a chat says after these messages, or its error.
  std::string After(const std::string& messages, const std::string& members) {
    const auto client =
        Post("/v1/chat/completions", R"({"messages": [)" + messages + "], " + members + "}");
    EXPECT_TRUE(client->WaitForEnd());
    const Json json = *ParseJson(client->bytes());
    if (client->status() != 200) return *json.Find("error")->Find("message")->string();
    const Json& message = *(*json.Find("choices")->array())[0].Find("message");
    EXPECT_EQ(message.Find("reasoning"), nullptr) << "the answer had begun";
    return *message.Find("content")->string();
  }
};

constexpr const char* kOpen =
    R"({"role": "user", "content": "hi"}, {"role": "assistant", "content": "{\"a\":"})";

TEST_F(TurnEndTest, FormAndWordsAreHeldTogether) {
  Start();
  const std::string form =
      R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema":
         {"type": "object", "properties": {"a": {"enum": [7]}}, "required": ["a"]}}})";
  const std::string rest = After(kOpen, R"("max_tokens": 60, "seed": 3, )" + form);
  auto json = ParseJson("{\"a\":" + rest);
  ASSERT_TRUE(json.ok()) << rest;
  EXPECT_EQ(json->Find("a")->integer(), 7);
  EXPECT_THAT(After(R"({"role": "user", "content": "hi"}, {"role": "assistant", "content": "no"})",
                    R"("max_tokens": 60, )" + form),
              HasSubstr("no reply that begins with it"));
}

TEST_F(TurnEndTest, EveryDialectContinues) {
  Start();
  const auto whole = Post("/tokenize", std::string(R"({"messages": [)") + kOpen + "]}");
  ASSERT_TRUE(whole->WaitForEnd());
  const auto count = ParseJson(whole->bytes())->Find("count")->integer();
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/messages/count_tokens", std::string(R"({"messages": [)") + kOpen + "]}"},
           {"/v1/responses/input_tokens", std::string(R"({"input": [)") + kOpen + "]}"}}) {
    const auto client = Post(path, body);
    ASSERT_TRUE(client->WaitForEnd());
    EXPECT_EQ(ParseJson(client->bytes())->Find("input_tokens")->integer(), count)
        << path << client->bytes();
  }
  const auto user = Post("/tokenize", R"({"messages": [{"role": "user", "content": "hi"}]})");
  ASSERT_TRUE(user->WaitForEnd());
  // One byte is one token here: <|channel|>final<|message|>{"a":
  EXPECT_EQ(count, *ParseJson(user->bytes())->Find("count")->integer() + 2 + 5 + 5);
}

TEST_F(TurnEndTest, TheFieldsOfVllmMeanTheSame) {
  Start();
  const std::string user = R"({"role": "user", "content": "hi"})";
  EXPECT_THAT(After(user, R"("max_tokens": 1, "continue_final_message": true)"),
              HasSubstr("nothing to continue"));
  EXPECT_THAT(After(user, R"("max_tokens": 1, "add_generation_prompt": false)"),
              HasSubstr("nothing to continue"));
  EXPECT_THAT(
      After(kOpen,
            R"("max_tokens": 1, "continue_final_message": true, "add_generation_prompt": true)"),
      HasSubstr("add_generation_prompt"));
  EXPECT_THAT(
      After(kOpen,
            R"("max_tokens": 1, "continue_final_message": false, "add_generation_prompt": false)"),
      HasSubstr("add_generation_prompt"));
  EXPECT_EQ(After(kOpen, R"("max_tokens": 9, "seed": 1, "continue_final_message": true,
                            "add_generation_prompt": false)"),
            After(kOpen, R"("max_tokens": 9, "seed": 1)"));
}

}  // namespace
}  // namespace hearth
