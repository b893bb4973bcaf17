// SPDX-License-Identifier: Apache-2.0
// The renderer by itself. That its tokens are those of training is shown against the official
// package in tests/harmony.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "testing/byte_tokenizer.h"
#include "text/harmony.h"
#include "text/harmony_tools.h"

namespace hearth {
namespace {

const testing::ByteTokenizer& Bytes() {
  static const testing::ByteTokenizer tokenizer;
  return tokenizer;
}

constexpr std::string_view kSystem =
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    "Knowledge cutoff: 2024-06\n\nReasoning: medium\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message."
    "<|end|>";

// Everything after the system message, which most tests are not about.
std::string Rendered(const Conversation& conversation, const HarmonyOptions& options = {}) {
  Result<std::vector<Token>> tokens = RenderHarmony(conversation, options, Bytes());
  EXPECT_TRUE(tokens.ok()) << tokens.status().message();
  const std::string text = Bytes().Text(*tokens);
  EXPECT_TRUE(text.starts_with(kSystem)) << text;
  return text.substr(std::min(text.size(), kSystem.size()));
}

Message Said(Role role, std::string content, std::string reasoning = "") {
  Message message;
  message.role = role;
  message.content = std::move(content);
  message.reasoning = std::move(reasoning);
  return message;
}
Message Calls(std::string name, std::string reasoning) {
  Message message = Said(Role::kAssistant, "", std::move(reasoning));
  message.tool_calls = {{"id", std::move(name), "{}"}};
  return message;
}
Message ResultOf(std::string name) {
  Message message = Said(Role::kTool, "7");
  message.name = std::move(name);
  return message;
}

TEST(HarmonyRender, EmptyConversationIsSystemAndPrompt) {
  EXPECT_EQ(Rendered({}), "<|start|>assistant");
}

TEST(HarmonyRender, EffortAndDateStandInTheSystemMessage) {
  Conversation conversation;
  conversation.reasoning_effort = ReasoningEffort::kHigh;
  HarmonyOptions options;
  options.date = "2026-01-31";
  const std::string text = Bytes().Text(*RenderHarmony(conversation, options, Bytes()));
  EXPECT_NE(text.find("2024-06\nCurrent date: 2026-01-31\n\nReasoning: high\n\n# Valid"),
            std::string::npos);
}

TEST(HarmonyRender, OpeningInstructionsShareOneDeveloperMessageWithTools) {
  Conversation conversation;
  conversation.messages = {Said(Role::kSystem, "One."), Said(Role::kDeveloper, "Two."),
                           Said(Role::kUser, "hi"), Said(Role::kDeveloper, "Three.")};
  EXPECT_EQ(Rendered(conversation),
            "<|start|>developer<|message|># Instructions\n\nOne.\n\nTwo.<|end|>"
            "<|start|>user<|message|>hi<|end|>"
            "<|start|>developer<|message|># Instructions\n\nThree.<|end|><|start|>assistant");
  conversation.tools = {{"f", "Does it.", {}}};
  const std::string text = Bytes().Text(*RenderHarmony(conversation, {}, Bytes()));
  EXPECT_NE(text.find("message.\nCalls to these tools must go to the commentary channel: "
                      "'functions'.<|end|><|start|>developer<|message|># Instructions\n\nOne.\n\n"
                      "Two.\n\n# Tools\n\n## functions\n\nnamespace functions {\n\n// Does it.\n"
                      "type f = () => any;\n\n} // namespace functions<|end|>"),
            std::string::npos)
      << text;
}

TEST(HarmonyRender, CallsAndResultsNameTheFunction) {
  Conversation conversation;
  conversation.messages = {Calls("f", "think"), ResultOf("f")};
  conversation.messages[0].content = "Looking.";
  EXPECT_EQ(Rendered(conversation),
            "<|start|>assistant<|channel|>analysis<|message|>think<|end|>"
            "<|start|>assistant<|channel|>commentary<|message|>Looking.<|end|>"
            "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}"
            "<|call|>"
            "<|start|>functions.f to=assistant<|channel|>commentary<|message|>7<|end|>"
            "<|start|>assistant");
}

TEST(HarmonyRender, TextNeverBecomesAControlToken) {
  std::string every;
  for (const SpecialName& special : Bytes().specials()) every += special.name;
  Conversation conversation;
  conversation.messages = {Said(Role::kUser, every), Said(Role::kAssistant, every, every),
                           ResultOf(every), Calls(every, every)};
  conversation.tools = {{"f", every, Json(JsonObject{{"type", Json(every)}})}};
  Result<std::vector<Token>> tokens = RenderHarmony(conversation, {}, Bytes());
  ASSERT_TRUE(tokens.ok());
  const Token start = *Bytes().Special("<|start|>");
  // system, developer, user, analysis, final, result, analysis, call, prompt
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), start), 9);
}

TEST(HarmonyRender, ReasoningOfFinishedTurnsIsLeftOut) {
  const Message ask = Said(Role::kUser, "?");
  const Message answer = Said(Role::kAssistant, "!", "OLD");
  Conversation conversation;
  conversation.messages = {ask, answer, ask, answer, ask, Calls("f", "NEW"), ResultOf("f")};
  const std::string text = Rendered(conversation);
  EXPECT_EQ(text.find("OLD"), std::string::npos);
  EXPECT_NE(text.find("NEW"), std::string::npos);
  HarmonyOptions options;
  options.keeps_finished_reasoning = true;
  EXPECT_NE(Rendered(conversation, options).find("OLD"), std::string::npos);
}

TEST(HarmonyRender, ReasoningOfAnOpenTurnStays) {
  const Message ask = Said(Role::kUser, "?");
  Conversation conversation;
  conversation.messages = {ask, Calls("f", "ONE"), ResultOf("f"), Calls("g", "TWO"), ResultOf("g")};
  EXPECT_NE(Rendered(conversation).find("ONE"), std::string::npos);
  // An answer that is followed by another call did not end the turn.
  conversation.messages.insert(conversation.messages.begin() + 3,
                               Said(Role::kAssistant, "not yet", "THREE"));
  EXPECT_NE(Rendered(conversation).find("ONE"), std::string::npos);
  conversation.messages.push_back(Said(Role::kAssistant, "done"));
  EXPECT_EQ(Rendered(conversation).find("ONE"), std::string::npos);
}

TEST(HarmonyRender, HistoryIsStableWhileATurnIsOpen) {
  // What was a prompt must stay a prefix of the next one, or every cached block is lost.
  const Message ask = Said(Role::kUser, "?");
  Conversation conversation;
  conversation.messages = {ask, Said(Role::kAssistant, "!", "OLD"), ask};
  std::string before = Rendered(conversation);
  for (int i = 0; i < 3; ++i) {
    conversation.messages.push_back(Calls("f", "thought"));
    conversation.messages.push_back(ResultOf("f"));
    const std::string after = Rendered(conversation);
    EXPECT_TRUE(after.starts_with(before)) << i;
    before = after;
  }
}

TEST(HarmonyRender, RefusesANamelessToolMessage) {
  Conversation conversation;
  conversation.messages = {Said(Role::kTool, "7")};
  EXPECT_EQ(RenderHarmony(conversation, {}, Bytes()).status().code(), Code::kInvalid);
}

std::string Signature(std::string_view schema) {
  Result<Json> parameters = ParseJson(schema);
  EXPECT_TRUE(parameters.ok()) << parameters.status().message();
  const std::string text = HarmonyToolsSection({{"f", "", *parameters}});
  const size_t begin = text.find("(_: ") + 4;
  return text.substr(begin, text.rfind(") => any") - begin);
}

TEST(HarmonyTools, DefaultNumbersAreTheShortestDigitsThatReadBack) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0.0", "-0.0"},
      {"1.0", "1.0"},
      {"1e15", "1000000000000000.0"},
      {"1e16", "1e16"},
      {"123456789012345680.0", "1.2345678901234568e17"},
      {"12345.678", "12345.678"},
      {"1e-5", "0.00001"},
      {"1.25e-5", "0.0000125"},
      {"1e-6", "1e-6"},
      {"-1.5e-7", "-1.5e-7"},
      {"5e-324", "5e-324"},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "1.8446744073709552e19"},
      // Digits that the official package rounds wrongly; see docs/harmony.md.
      {"5.905126907618044e-09", "5.905126907618044e-9"},
      {"3660218427604.0005", "3660218427604.0005"},
  };
  for (const auto& [given, shown] : cases) {
    EXPECT_EQ(
        Signature(std::string(R"({"type":"object","properties":{"a":{"default":)") + given + "}}}"),
        std::string("{\na?: any, // default: ") + shown + "\n}");
  }
}

TEST(HarmonyTools, KeepsTheOrderOfProperties) {
  EXPECT_EQ(Signature(R"({"type":"object","required":["a"],"properties":
                         {"z":{"type":"integer"},"a":{"type":"string"}}})"),
            "{\nz?: number,\na: string,\n}");
}

TEST(HarmonyTools, RequiredNamesAreLookedUpOnce) {
  const auto seconds_for = [](int count) {
    std::string properties, required;
    for (int i = 0; i < count; ++i) {
      properties += Printf("%s\"a%06d\":{}", i > 0 ? "," : "", i);
      required += Printf("%s\"b%06d\"", i > 0 ? "," : "", i);
    }
    const std::string schema =
        R"({"type":"object","properties":{)" + properties + R"(},"required":[)" + required + "]}";
    const std::clock_t began = std::clock();
    EXPECT_GT(Signature(schema).size(), static_cast<size_t>(count));
    return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  };
  seconds_for(1000);
  const double once = seconds_for(15'000), twice = seconds_for(30'000);
  EXPECT_LT(twice, 3 * once + 0.1) << once;
}

TEST(HarmonyTools, DeepSchemasAreBounded) {
  // As deep as the JSON parser lets through.
  std::string schema = R"({"type":"string"})";
  for (int i = 0; i < 62; ++i) schema = R"({"type":"array","items":)" + schema + "}";
  std::string want = "string";
  for (int i = 0; i < 62; ++i) want += "[]";
  EXPECT_EQ(Signature(schema), want);
}

TEST(HarmonyRender, TheFormOfTheAnswerEndsTheDeveloperMessage) {
  const AnswerFormat answer{"shopping_list", "",
                            *ParseJson(R"({"type":"object","properties":{"b":{},"a":{}}})")};
  HarmonyOptions options;
  options.answer = &answer;
  Conversation conversation;
  EXPECT_EQ(Rendered(conversation, options),
            "<|start|>developer<|message|># Response Formats\n\n## shopping_list\n\n"
            R"({"type":"object","properties":{"b":{},"a":{}}})"
            "<|end|><|start|>assistant");
  AnswerFormat told = answer;
  told.description = "What to buy.";
  options.answer = &told;
  conversation.messages = {Said(Role::kSystem, "Be brief."), Said(Role::kUser, "Milk?")};
  conversation.tools = {{"f", "", Json()}};
  const std::string text = Bytes().Text(*RenderHarmony(conversation, options, Bytes()));
  EXPECT_NE(text.find("<|start|>developer<|message|># Instructions\n\nBe brief.\n\n# Tools\n\n"),
            std::string::npos);
  EXPECT_NE(text.find("} // namespace functions\n\n# Response Formats\n\n## shopping_list\n\n"
                      "// What to buy.\n{\"type\":\"object\","),
            std::string::npos);
}

TEST(HarmonyRender, AnAnswerCanBeLeftOpen) {
  Conversation conversation;
  conversation.messages = {Said(Role::kUser, "a"), Said(Role::kAssistant, "b", "old"),
                           Said(Role::kUser, "c"), Said(Role::kAssistant, "d <|end|>", "new")};
  conversation.continues_last = true;
  EXPECT_EQ(Rendered(conversation),
            "<|start|>user<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|end|>"
            "<|start|>user<|message|>c<|end|>"
            "<|start|>assistant<|channel|>analysis<|message|>new<|end|>"
            "<|start|>assistant<|channel|>final<|message|>d <|end|>");
  conversation.messages.push_back(Calls("f", ""));
  EXPECT_FALSE(RenderHarmony(conversation, {}, Bytes()).ok()) << "a call is no answer";
}

}  // namespace
}  // namespace hearth
