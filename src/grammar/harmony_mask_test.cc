// SPDX-License-Identifier: Apache-2.0
#include "grammar/harmony_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/byte_tokenizer.h"
#include "testing/random_reply.h"
#include "text/harmony_parse.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

const testing::ByteTokenizer& Bytes() {
  static const testing::ByteTokenizer tokenizer;
  return tokenizer;
}
GrammarCompiler& Compiler() {
  static GrammarCompiler compiler(*GrammarVocabulary::Make(Bytes()));
  return compiler;
}
const HarmonyMasks& Masks() {
  static const auto masks = *HarmonyMasks::Make(Bytes(), Compiler());
  return *masks;
}

std::vector<ToolDefinition> Tools() {
  return {{.name = "add",
           .description = "",
           .parameters = *ParseJson(R"({"type":"object","properties":{"n":{"type":"integer"}},
                                        "required":["n"]})")},
          {.name = "add_all", .description = "", .parameters = {}}};
}

// How much of `stream` the mask lets pass; all of it and finished: "whole".
std::string Passes(const ReplyRules& rules, std::string_view stream) {
  auto mask = Masks().New(Tools(), rules);
  EXPECT_TRUE(mask.ok()) << mask.status().message();
  std::vector<uint32_t> bits(MaskWords(Bytes().vocab_size()));
  std::string passed;
  for (const Token token : Bytes().Stream(stream)) {
    EXPECT_TRUE((*mask)->Fill(bits).ok());
    const bool may = IsAllowed(bits, token);
    EXPECT_EQ((*mask)->Accept(token), may) << stream;
    if (!may) return passed;
    passed += Bytes().Bytes(token);
  }
  return (*mask)->is_finished() ? "whole" : "open";
}

constexpr const char* kThought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant";

TEST(HarmonyMask, RepliesAsTheModelWritesThem) {
  const std::string thought = kThought;
  for (const std::string& reply : {
           std::string("<|channel|>final<|message|>Hi { there }<|return|>"),
           thought + "<|channel|>final<|message|>Hi<|return|>",
           thought + thought + "<|channel|>final<|message|><|return|>",
           thought + "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"n\":1}"
                     "<|call|>",
           thought + " to=functions.add<|channel|>commentary <|constrain|>json<|message|>{\"n\":1}"
                     "<|call|>",
           thought + "<|channel|>commentary to=functions.add_all<|constrain|>json<|message|>{}"
                     "<|call|>",
           thought + "<|channel|>commentary<|message|>I add.<|end|><|start|>assistant<|channel|>"
                     "commentary to=functions.add <|constrain|>json<|message|>{\"n\":1}<|call|>",
           thought + " to=functions.add<|channel|>commentary <|constrain|>json<|message|>{\"n\":1}"
                     "<|end|><|start|>assistant to=functions.add_all<|channel|>commentary "
                     "<|constrain|>json<|message|>{}<|call|>",
       }) {
    EXPECT_EQ(Passes({}, reply), "whole") << reply;
  }
}

TEST(HarmonyMask, WhatReportsAreMadeOfCannotBeWritten) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"<|channel|>commentary?", "<|channel|>commentary"},
      {"<|channel|>thoughts", "<|channel|>"},
      {"<|channel|>final<|channel|>", "<|channel|>final"},
      {"<|message|>Hi", ""},
      {"Hi", ""},
      {"<|channel|>final<|message|>Hi<|end|>", "<|channel|>final<|message|>Hi"},
      {"<|channel|>final<|message|>Hi<|call|>", "<|channel|>final<|message|>Hi"},
      {"<|channel|>final<|message|>Hi<|start|>", "<|channel|>final<|message|>Hi"},
      {"<|channel|>final<|message|>Hi<|endoftext|>", "<|channel|>final<|message|>Hi"},
      {"<|channel|>analysis<|message|>Hm<|return|>", "<|channel|>analysis<|message|>Hm"},
      {"<|channel|>analysis to=functions.add", "<|channel|>analysis"},
      {"<|channel|>final to=functions.add", "<|channel|>final"},
      {"<|channel|>final <|constrain|>", "<|channel|>final"},
      {"<|channel|>commentary to=functions.sub", "<|channel|>commentary to=functions."},
      {"<|channel|>commentary to=functions.add_al<|constrain|>",
       "<|channel|>commentary to=functions.add_al"},
      {" to=functions.add<|channel|>final", " to=functions.add<|channel|>"},
      {"<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"m",
       "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\""},
      {"<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"n\":1<|call|>",
       "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"n\":1"},
      {"<|channel|>analysis<|message|>Hm<|end|><|channel|>",
       "<|channel|>analysis<|message|>Hm<|end|>"},
      {"<|channel|>analysis<|message|>Hm<|end|><|start|>user",
       "<|channel|>analysis<|message|>Hm<|end|><|start|>"},
  };
  for (const auto& [stream, passed] : cases) EXPECT_EQ(Passes({}, stream), passed) << stream;
}

TEST(HarmonyMask, ToolChoiceHolds) {
  const std::string thought = kThought;
  const std::string call =
      "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"n\":1}<|call|>";
  EXPECT_EQ(Passes({.tool_choice = ToolChoice::kNone}, call), "<|channel|>");
  EXPECT_EQ(Passes({.tool_choice = ToolChoice::kRequired}, thought + call), "whole");
  EXPECT_EQ(Passes({.tool_choice = ToolChoice::kRequired}, "<|channel|>final"), "<|channel|>");
  const ReplyRules named = {.tool_choice = ToolChoice::kNamed, .named_tool = "add_all"};
  EXPECT_EQ(Passes(named, call), "<|channel|>commentary to=functions.add");
  EXPECT_EQ(Passes(named, "<|channel|>final"), "<|channel|>");
  const ReplyRules one = {.parallel_calls = false};
  const std::string two =
      " to=functions.add_all<|channel|>commentary<|constrain|>json<|message|>{}";
  EXPECT_EQ(Passes(one, two + "<|end|>"), two);
  // After a call only calls: an answer would not have seen the result.
  EXPECT_EQ(Passes({}, two + "<|end|><|start|>assistant<|channel|>final"),
            two + "<|end|><|start|>assistant<|channel|>");
  EXPECT_FALSE(Masks().New(Tools(), {.tool_choice = ToolChoice::kNamed, .named_tool = "sub"}).ok());
  EXPECT_FALSE(Masks().New({}, {.tool_choice = ToolChoice::kRequired}).ok());
}

TEST(HarmonyMask, TheAnswersSchemaBindsTheFinalBodyOnly) {
  const Json schema = *ParseJson(R"({"enum":["a","b"]})");
  const ReplyRules rules = {.answer_schema = &schema};
  const std::string thought = kThought;
  EXPECT_EQ(Passes(rules, thought + "<|channel|>final <|constrain|>json<|message|>\"a\"<|return|>"),
            "whole");
  EXPECT_EQ(Passes(rules, thought + "<|channel|>final<|message|>\"b\"<|return|>"), "whole");
  EXPECT_EQ(Passes(rules, "<|channel|>final<|message|>\"c"), "<|channel|>final<|message|>\"");
  EXPECT_EQ(Passes(rules, "<|channel|>final<|message|>\"a<|return|>"),
            "<|channel|>final<|message|>\"a");
  // Words before a call would stand in the same content as the answer.
  EXPECT_EQ(Passes(rules, "<|channel|>commentary<|message|>"), "<|channel|>commentary");
}

TEST(HarmonyMask, ASpentReasoningBudgetClosesTheChannel) {
  auto mask = Masks().New({}, {.reasoning_tokens = 3});
  ASSERT_TRUE(mask.ok());
  for (const Token token : Bytes().Stream("<|channel|>analysis<|message|>hm")) {
    ASSERT_TRUE((*mask)->Accept(token));
  }
  std::vector<uint32_t> bits(MaskWords(Bytes().vocab_size()));
  // From here on the mask leaves no choice but the end, the start and the author...
  for (const Token token : Bytes().Stream("<|end|><|start|>assistant<|channel|>final<|message|>")) {
    ASSERT_TRUE((*mask)->Fill(bits).ok());
    int allowed = 0;
    for (const uint32_t word : bits) allowed += std::popcount(word);
    EXPECT_EQ(allowed, 1);
    EXPECT_TRUE(IsAllowed(bits, token)) << Bytes().Bytes(token);
    ASSERT_TRUE((*mask)->Accept(token));
  }
  EXPECT_EQ(
      Passes({.tool_choice = ToolChoice::kNone, .reasoning_tokens = 0}, "<|channel|>analysis"),
      "<|channel|>");
}

TEST(HarmonyMask, ABadSchemaIsRefusedWithItsTool) {
  std::vector<ToolDefinition> tools = Tools();
  tools[1].parameters = *ParseJson(R"({"not":{}})");
  EXPECT_THAT(Masks().New(tools, {}).status().message(), HasSubstr("tool \"add_all\""));
  const Json schema = *ParseJson(R"({"$ref":"elsewhere"})");
  EXPECT_THAT(Masks().New({}, {.answer_schema = &schema}).status().message(),
              HasSubstr("response_format"));
}

TEST(HarmonyMask, NoiseUnderAMaskNeedsNoRepair) {
  testing::RandomModel model(Bytes(), {*Bytes().Special("<|return|>"), *Bytes().Special("<|call|>"),
                                       *Bytes().Special("<|end|>")});
  const Json schema = *ParseJson(R"({"type":"array","items":{"type":"boolean"}})");
  std::vector<int> ends(4);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ReplyRules rules;
    rules.tool_choice = std::array{ToolChoice::kAuto, ToolChoice::kNone, ToolChoice::kRequired,
                                   ToolChoice::kNamed}[seed % 4];
    rules.named_tool = "add";
    rules.parallel_calls = seed % 3 != 0;
    if (seed % 5 == 0) rules.answer_schema = &schema;
    if (seed % 7 == 0) rules.reasoning_tokens = static_cast<int>(seed % 10);
    auto mask = Masks().New(Tools(), rules);
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    const auto reply = model.Run(**mask, seed, 40, 4000);
    ASSERT_EQ(reply.error, "") << seed;
    ASSERT_TRUE(reply.is_finished) << seed;
    HarmonyParser parser(Bytes(), *HarmonyTokens::Find(Bytes()));
    std::vector<HarmonyEvent> events;
    parser.Feed(reply.tokens, events);
    parser.Finish(events);
    EXPECT_EQ(parser.repairs().total(), 0u) << seed;
    ++ends[static_cast<size_t>(events.back().end)];
  }
  EXPECT_GT(ends[static_cast<size_t>(HarmonyEnd::kCall)], 200);
  EXPECT_GT(ends[static_cast<size_t>(HarmonyEnd::kReturn)], 100);
}

}  // namespace
}  // namespace hearth
