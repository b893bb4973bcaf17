// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/fields.h"

#include <gtest/gtest.h>

#include "server/dialects/chat/chat_request.h"

namespace hearth {
namespace {

ApiResult<TurnRequest> Read(const std::string& members) {
  const std::string text = std::string(R"({"messages": [{"role": "user", "content": "hi"}])") +
                           (members.empty() ? "" : ", ") + members + "}";
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return ReadChatRequest(*std::move(json));
}

std::string ParamOf(const std::string& members) {
  const auto read = Read(members);
  const auto* error = std::get_if<ApiError>(&read);
  if (error == nullptr) return "";
  EXPECT_EQ(error->status, 400);
  EXPECT_NE(error->message.find(error->param), std::string::npos) << error->message;
  return error->param;
}

TEST(ChatFields, AreInOrderAndUnique) {
  const auto table = ChatFields();
  for (size_t i = 1; i < table.size(); ++i) EXPECT_LT(table[i - 1].name, table[i].name);
}

TEST(ChatFields, AreReadOrRefusedByName) {
  EXPECT_EQ(ParamOf(""), "");
  EXPECT_EQ(ParamOf(R"("temperature": 0.5, "top_p": null, "user": "x")"), "");
  EXPECT_EQ(ParamOf(R"("temperatur": 0.5)"), "temperatur");
  EXPECT_EQ(ParamOf(R"("temperature": 3)"), "temperature");
  EXPECT_EQ(ParamOf(R"("temperature": "hot")"), "temperature");
  EXPECT_EQ(ParamOf(R"("max_tokens": 0)"), "max_tokens");
  EXPECT_EQ(ParamOf(R"("max_tokens": 1.5)"), "max_tokens");
  EXPECT_EQ(ParamOf(R"("n": 17)"), "n");
  EXPECT_EQ(ParamOf(R"("n": 1)"), "");
  EXPECT_EQ(ParamOf(R"("store": true)"), "store");
  EXPECT_EQ(ParamOf(R"("store": false)"), "");
  EXPECT_EQ(ParamOf(R"("top_logprobs": 2)"), "top_logprobs");
  EXPECT_EQ(ParamOf(R"("top_logprobs": 2, "logprobs": true)"), "");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "text"})"), "");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "json_object"})"), "");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "yaml"})"), "response_format.type");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "json_object"}, "guided_regex": "a")"),
            "response_format");
  EXPECT_EQ(ParamOf(R"("guided_regex": "a", "guided_json": {})"), "guided_regex");
  EXPECT_EQ(ParamOf(R"("structured_outputs": {"disable_fallback": 1})"),
            "structured_outputs.disable_fallback");
  EXPECT_EQ(ParamOf(R"("reasoning_effort": "huge")"), "reasoning_effort");
  EXPECT_EQ(ParamOf(R"("reasoning": {"summary": "auto"})"), "reasoning.summary");
  EXPECT_EQ(ParamOf(R"("stop": [1])"), "stop");
  EXPECT_EQ(ParamOf(R"("stop": "")"), "stop");
  EXPECT_EQ(ParamOf(R"("logit_bias": {"x": 1})"), "logit_bias");
  EXPECT_EQ(ParamOf(R"("logit_bias": {"1": 101})"), "logit_bias");
  EXPECT_EQ(ParamOf(R"("tool_choice": "required")"), "tool_choice");
}

TEST(ChatFields, ReachTheRequest) {
  const auto read = Read(
      R"("temperature": 0.5, "top_k": 7, "stop": ["a", "b"], "max_tokens": 3, "seed": 9,
         "max_completion_tokens": 5, "stream": true, "stream_options": {"include_usage": true},
         "logit_bias": {"12": -100}, "model": "m")");
  ASSERT_TRUE(std::holds_alternative<TurnRequest>(read));
  const TurnRequest& chat = std::get<TurnRequest>(read);
  EXPECT_EQ(chat.sampling.temperature, 0.5f);
  EXPECT_EQ(chat.sampling.top_k, 7);
  EXPECT_EQ(chat.sampling.seed, 9u);
  EXPECT_EQ(chat.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(chat.max_tokens, 5);
  EXPECT_TRUE(chat.streams && chat.wants_usage);
  ASSERT_EQ(chat.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(chat.sampling.logit_bias[0].token, 12);
}

TEST(ChatFields, HaveDocumentation) {
  const std::string page = FieldsAsMarkdown(ChatFields());
  for (const Field& field : ChatFields()) {
    EXPECT_FALSE(field.doc.empty()) << field.name;
    EXPECT_NE(page.find("`" + std::string(field.name) + "`"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth
