// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/peer_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/dialects/chat/chat_request.h"
#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

ApiResult<TurnRequest> Read(const std::string& members) {
  return ReadChatRequest(
      *ParseJson(R"({"messages": [{"role": "user", "content": "hi"}], )" + members + "}"));
}

TurnRequest MustRead(const std::string& members) {
  auto read = Read(members);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  return read.ok() ? *std::move(read) : TurnRequest();
}

std::string ParamOf(const std::string& members) {
  const auto read = Read(members);
  return read.ok() ? "" : read.error().param;
}

TEST(PeerFields, BecomeOurSettings) {
  const TurnRequest read = MustRead(
      R"("repeat_penalty": 1.25, "repeat_last_n": 64, "n_predict": 7, "typical_p": 0.5,
         "dry_multiplier": 0.75, "dry_base": 2, "dry_allowed_length": 3, "dry_penalty_last_n": 99,
         "xtc_probability": 0.25, "xtc_threshold": 0.125, "thinking_token_budget": 5)");
  EXPECT_EQ(read.sampling.repetition_penalty, 1.25f);
  EXPECT_EQ(read.sampling.penalty_window, 64);
  EXPECT_EQ(read.max_tokens, 7);
  EXPECT_EQ(read.sampling.typical_p, 0.5f);
  EXPECT_EQ(read.sampling.dry_multiplier, 0.75f);
  EXPECT_EQ(read.sampling.dry_base, 2.0f);
  EXPECT_EQ(read.sampling.dry_allowed_length, 3);
  EXPECT_EQ(read.sampling.dry_window, 99);
  EXPECT_EQ(read.sampling.xtc_probability, 0.25f);
  EXPECT_EQ(read.sampling.xtc_threshold, 0.125f);
  EXPECT_EQ(read.reasoning_tokens, 5);
  EXPECT_EQ(MustRead(R"("json_schema": {"type": "object"})").answer.kind,
            AnswerShape::Kind::kSchema);
}

TEST(PeerFields, MinusOneIsAllThereIs) {
  const TurnRequest read =
      MustRead(R"("n_predict": -1, "repeat_last_n": -1, "dry_penalty_last_n": -1)");
  EXPECT_EQ(read.max_tokens, 0) << "as many as fit";
  EXPECT_EQ(read.sampling.penalty_window, 0) << "all";
  EXPECT_EQ(read.sampling.dry_window, 1 << 17);
}

TEST(PeerFields, TwoNamesMayNotDiffer) {
  EXPECT_EQ(ParamOf(R"("repetition_penalty": 1.1, "repeat_penalty": 1.2)"), "repeat_penalty");
  EXPECT_EQ(ParamOf(R"("repetition_penalty": 1.1, "repeat_penalty": 1.1)"), "");
  EXPECT_EQ(ParamOf(R"("max_tokens": 5, "n_predict": 6)"), "n_predict");
  EXPECT_EQ(ParamOf(R"("max_reasoning_tokens": 5, "thinking_token_budget": 6)"),
            "thinking_token_budget");
}

TEST(PeerFields, WhatIsNotDoneIsRefusedUnlessItAsksForNothing) {
  for (const char* members : {R"("mirostat": 0, "mirostat_tau": 5.0)", R"("tfs_z": 1.0)",
                              R"("verbosity": "medium")", R"("cache_prompt": false, "id_slot": -1)",
                              R"("keep_alive": "5m")", R"("skip_special_tokens": true)"}) {
    EXPECT_EQ(ParamOf(members), "") << members;
  }
  EXPECT_EQ(ParamOf(R"("mirostat": 2)"), "mirostat");
  EXPECT_EQ(ParamOf(R"("verbosity": "low")"), "verbosity");
  EXPECT_EQ(ParamOf(R"("grammar": "root ::= \"a\"")"), "grammar");
  EXPECT_EQ(ParamOf(R"("repeat_last_n": 0)"), "repeat_last_n");
  EXPECT_EQ(ParamOf(R"("n_predict": 0)"), "n_predict");
}

TEST(TemplateVariables, AreScalarsWithinBounds) {
  const TurnRequest read = MustRead(
      R"("chat_template_kwargs": {"enable_thinking": false, "n": 2, "s": "x", "nothing": null})");
  EXPECT_EQ(WriteJson(Json(read.conversation.template_variables)),
            R"({"enable_thinking":false,"n":2,"s":"x"})");
  EXPECT_EQ(WriteJson(Json(MustRead(R"("enable_thinking": true)").conversation.template_variables)),
            R"({"enable_thinking":true})");
  std::string many = R"("chat_template_kwargs": {"v0": 0)";
  for (int i = 1; i < 16; ++i) many += Printf(R"(, "v%d": 0)", i);
  EXPECT_EQ(ParamOf(many + "}"), "");
  EXPECT_EQ(ParamOf(many + R"(, "v16": 0})"), "chat_template_kwargs");
  const std::string long_text(1025, 'x');
  for (const auto& [members, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("a": [1])", "a"},
           {R"("a": {})", "a"},
           {R"("a": ")" + long_text + "\"", "a"},
           {R"("messages": "x")", "messages"},
           {R"("tools": true)", "tools"},
           {R"("add_generation_prompt": false)", "add_generation_prompt"},
           {R"("bos_token": "")", "bos_token"},
           {R"("raise_exception": 1)", "raise_exception"},
           {R"("a b": 1)", "a b"},
           {R"("1a": 1)", "1a"},
           {R"("": 1)", ""}}) {
    EXPECT_EQ(ParamOf(R"("chat_template_kwargs": {)" + members + "}"),
              "chat_template_kwargs." + param);
  }
  EXPECT_EQ(ParamOf(R"("enable_thinking": true, "chat_template_kwargs": {"enable_thinking": 1})"),
            "enable_thinking");
}

TEST(TemplateVariables, EffortIsTheConversations) {
  const TurnRequest read = MustRead(R"("chat_template_kwargs": {"reasoning_effort": "high"})");
  EXPECT_EQ(read.conversation.reasoning_effort, ReasoningEffort::kHigh);
  EXPECT_TRUE(read.conversation.template_variables.empty());
  EXPECT_EQ(ParamOf(R"("chat_template_kwargs": {"reasoning_effort": 1})"),
            "chat_template_kwargs.reasoning_effort");
}

class UnknownFieldsTest : public testing::ServiceRig {
 protected:
  void StartWith(UnknownFields unknown) {
    ServiceOptions options;
    options.observer = &heard_;
    options.unknown_fields = unknown;
    Start(0, options);
  }
  testing::Heard heard_;
};

TEST_F(UnknownFieldsTest, AreRefusedByDefault) {
  StartWith(UnknownFields::kRefuse);
  const auto unknown = Chat(R"("max_tokens": 2, "top_a": 1)");
  const auto variable = Chat(R"("max_tokens": 2, "enable_thinking": false)");
  ASSERT_TRUE(unknown->WaitForEnd() && variable->WaitForEnd());
  EXPECT_EQ(unknown->status(), 400);
  EXPECT_EQ(variable->status(), 400) << "harmony has no such variable";
  EXPECT_THAT(variable->bytes(), HasSubstr("chat_template_kwargs.enable_thinking"));
}

TEST_F(UnknownFieldsTest, AreNamedWhereTheyAreIgnored) {
  StartWith(UnknownFields::kWarn);
  const auto whole =
      Chat(R"("max_tokens": 2, "top_a": 1, "mirostat": 2, "enable_thinking": false)");
  const auto stream = Chat(R"("max_tokens": 2, "stream": true, "a\nb": {"c": []})");
  ASSERT_TRUE(whole->WaitForEnd() && stream->WaitForEnd());
  EXPECT_EQ(whole->status(), 200) << whole->bytes();
  EXPECT_EQ(whole->header("x-hearth-ignored-fields"),
            "top_a, mirostat, chat_template_kwargs.enable_thinking");
  EXPECT_EQ(stream->header("x-hearth-ignored-fields"), "a?b");
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/completions", R"({"prompt": "a", "max_tokens": 1, "zz": 1})"},
           {"/v1/responses", R"({"input": "a", "max_output_tokens": 1, "zz": 1})"},
           {"/v1/messages",
            R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "zz": 1})"},
           {"/tokenize", R"({"prompt": "a", "zz": 1})"}}) {
    const auto client = Post(path, body);
    ASSERT_TRUE(client->WaitForEnd());
    EXPECT_EQ(client->status(), 200) << path << client->bytes();
    EXPECT_EQ(client->header("x-hearth-ignored-fields"), "zz") << path;
  }
  const auto known = Chat(R"("max_tokens": 2, "store": true)");
  ASSERT_TRUE(known->WaitForEnd());
  EXPECT_EQ(known->status(), 400) << "what is known and refused stays refused";
  service_.reset();  // joins those who tell
  EXPECT_EQ(heard_.outcomes[0].ignored_fields.empty(), false);
}

}  // namespace
}  // namespace hearth
