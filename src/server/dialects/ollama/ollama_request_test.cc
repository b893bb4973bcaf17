// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "server/dialects/ollama/ollama_dialect.h"
#include "server/dialects/ollama/ollama_options.h"
#include "testing/data.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHello = R"("model": "m", "messages": [{"role": "user", "content": "hi"}])";

OllamaRequest Read(ApiResult<OllamaRequest> (*read)(const Json&), const std::string& members) {
  auto got = read(*ParseJson("{" + members + "}"));
  EXPECT_TRUE(got.ok()) << members << (got.ok() ? "" : got.error().message);
  return got.ok() ? *std::move(got) : OllamaRequest();
}
OllamaRequest Chat(const std::string& members) {
  return Read(ReadOllamaChat, kHello + (", " + members));
}
OllamaRequest Generate(const std::string& members) {
  return Read(ReadOllamaGenerate, R"("model": "m", "prompt": "hi", )" + members);
}

std::string Refusal(ApiResult<OllamaRequest> (*read)(const Json&), const std::string& members) {
  const auto got = read(*ParseJson("{" + members + "}"));
  EXPECT_FALSE(got.ok()) << members;
  return got.ok() ? "" : got.error().message;
}

TEST(OllamaRequest, StreamsUnlessToldOtherwise) {
  EXPECT_TRUE(Read(ReadOllamaChat, kHello).turn.streams);
  EXPECT_TRUE(Chat(R"("stream": null)").turn.streams);
  EXPECT_FALSE(Chat(R"("stream": false)").turn.streams);
  EXPECT_TRUE(Generate(R"("raw": false)").turn.streams);
  EXPECT_FALSE(Generate(R"("stream": false)").turn.streams);
}

TEST(OllamaRequest, ReadsAPromptAsAConversation) {
  const TurnRequest turn = Generate(R"("system": "Be brief.")").turn;
  ASSERT_EQ(turn.conversation.messages.size(), 2u);
  EXPECT_EQ(turn.conversation.messages[0].role, Role::kSystem);
  EXPECT_EQ(turn.conversation.messages[0].content, "Be brief.");
  EXPECT_EQ(turn.conversation.messages[1].content, "hi");
  EXPECT_EQ(turn.prompt_field, "prompt");
  EXPECT_TRUE(turn.plain_prompts.empty());
  EXPECT_EQ(Generate(R"("system": "")").turn.conversation.messages.size(), 1u);
}

TEST(OllamaRequest, TakesARawPromptAsItIs) {
  const TurnRequest turn = Generate(R"("raw": true, "think": false, "system": "")").turn;
  ASSERT_EQ(turn.plain_prompts.size(), 1u);
  EXPECT_EQ(std::get<std::string>(turn.plain_prompts[0]), "hi");
  EXPECT_TRUE(turn.conversation.messages.empty());
  for (const char* other : {R"("system": "x")", R"("think": true)", R"("think": "low")"}) {
    EXPECT_THAT(Refusal(ReadOllamaGenerate,
                        R"("model": "m", "prompt": "hi", "raw": true, )" + std::string(other)),
                HasSubstr("not supported with raw"));
  }
}

TEST(OllamaRequest, KnowsWhenNothingIsAsked) {
  EXPECT_FALSE(Read(ReadOllamaChat, kHello).is_empty);
  EXPECT_TRUE(Read(ReadOllamaChat, R"("model": "m")").is_empty);
  EXPECT_TRUE(Read(ReadOllamaChat, R"("model": "m", "messages": [], "keep_alive": 0)").is_empty);
  EXPECT_TRUE(Read(ReadOllamaGenerate, R"("model": "m")").is_empty);
  EXPECT_TRUE(Read(ReadOllamaGenerate, R"("model": "m", "prompt": "", "raw": true)").is_empty);
  EXPECT_TRUE(Read(ReadOllamaEmbed, R"("model": "m", "input": [])").is_empty);
  EXPECT_TRUE(Read(ReadOllamaEmbeddings, R"("model": "m")").is_empty);
}

TEST(OllamaRequest, HoldsTheAnswerToAFormat) {
  EXPECT_EQ(Chat(R"("format": "")").turn.answer.kind, AnswerShape::Kind::kText);
  EXPECT_EQ(Chat(R"("format": null)").turn.answer.kind, AnswerShape::Kind::kText);
  EXPECT_EQ(Chat(R"("format": "json")").turn.answer.kind, AnswerShape::Kind::kObject);
  const AnswerShape shape = Generate(R"("format": {"type": "integer"})").turn.answer;
  EXPECT_EQ(shape.kind, AnswerShape::Kind::kSchema);
  EXPECT_EQ(WriteJson(shape.schema), R"({"type":"integer"})");
  EXPECT_EQ(shape.field, "format");
  for (const char* wrong : {R"("xml")", "3", "[]", "true"}) {
    EXPECT_THAT(Refusal(ReadOllamaChat, kHello + Printf(R"(, "format": %s)", wrong)),
                HasSubstr("format: must be \"json\" or a JSON schema"));
  }
}

TEST(OllamaRequest, ThinksAsAsked) {
  const OllamaRequest unsaid = Read(ReadOllamaChat, kHello);
  EXPECT_FALSE(unsaid.wants_thoughts);
  EXPECT_FALSE(unsaid.turn.reasoning_tokens.has_value());
  const OllamaRequest no = Chat(R"("think": false)");
  EXPECT_FALSE(no.wants_thoughts);
  EXPECT_EQ(no.turn.reasoning_tokens, 0);
  const OllamaRequest yes = Chat(R"("think": true)");
  EXPECT_TRUE(yes.wants_thoughts);
  EXPECT_FALSE(yes.has_effort);
  EXPECT_FALSE(yes.turn.reasoning_tokens.has_value());
  const OllamaRequest low = Chat(R"("think": "low")");
  EXPECT_TRUE(low.wants_thoughts && low.has_effort);
  EXPECT_EQ(low.turn.conversation.reasoning_effort, ReasoningEffort::kLow);
  EXPECT_EQ(Chat(R"("think": "high")").turn.conversation.reasoning_effort, ReasoningEffort::kHigh);
  for (const char* wrong : {R"("much")", "3", "{}"}) {
    EXPECT_THAT(Refusal(ReadOllamaChat, kHello + Printf(R"(, "think": %s)", wrong)),
                HasSubstr(R"(think: must be true, false, "low", "medium" or "high")"));
  }
}

TEST(OllamaRequest, KeepsTheConversationsOwnMembersApart) {
  // Effort is part of a conversation, which is read after it.
  const OllamaRequest read = Chat(R"("think": "medium", "tools": [])");
  EXPECT_EQ(read.turn.conversation.messages.size(), 1u);
  EXPECT_EQ(read.turn.conversation.reasoning_effort, ReasoningEffort::kMedium);
}

TEST(OllamaRequest, AsksForLogprobs) {
  EXPECT_EQ(Read(ReadOllamaChat, kHello).turn.sampling.num_logprobs, -1);
  EXPECT_EQ(Chat(R"("logprobs": true)").turn.sampling.num_logprobs, 0);
  EXPECT_EQ(Chat(R"("logprobs": true, "top_logprobs": 3)").turn.sampling.num_logprobs, 3);
  EXPECT_THAT(Refusal(ReadOllamaChat, kHello + std::string(R"(, "top_logprobs": 3)")),
              HasSubstr("needs logprobs: true"));
}

TEST(OllamaRequest, ReadsOptions) {
  const TurnRequest turn = Chat(R"("options": {"num_predict": 5, "num_ctx": 9})").turn;
  EXPECT_EQ(turn.max_tokens, 5);
  EXPECT_THAT(turn.ignored_fields, ElementsAre("options.num_ctx"));
}

TEST(OllamaRequest, EmbedsTexts) {
  const TurnRequest one = Read(ReadOllamaEmbed, R"("model": "m", "input": "a")").turn;
  EXPECT_TRUE(one.prompt_only && one.pools);
  EXPECT_FALSE(one.streams);
  EXPECT_EQ(one.plain_prompts.size(), 1u);
  const TurnRequest two =
      Read(ReadOllamaEmbed, R"("model": "m", "input": ["a", "b"], "truncate": true,
                               "options": {"num_ctx": 5}, "keep_alive": "5m", "dimensions": 0)")
          .turn;
  EXPECT_EQ(two.plain_prompts.size(), 2u);
  EXPECT_THAT(two.ignored_fields, ElementsAre("options.num_ctx"));
  const TurnRequest old = Read(ReadOllamaEmbeddings, R"("model": "m", "prompt": "a")").turn;
  EXPECT_TRUE(old.prompt_only && old.pools);
  EXPECT_EQ(old.prompt_field, "prompt");
  EXPECT_THAT(Refusal(ReadOllamaEmbed, R"("model": "m")"), HasSubstr("input: is missing"));
  EXPECT_THAT(Refusal(ReadOllamaEmbed, R"("model": "m", "input": {"a": 1})"), HasSubstr("input: "));
  EXPECT_THAT(Refusal(ReadOllamaEmbed, R"("model": "m", "input": "a", "dimensions": 8)"),
              HasSubstr("dimensions: not supported"));
}

TEST(OllamaRequest, RefusesWhatCannotBeDone) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("suffix": "end")", "suffix: not supported: fill-in-the-middle"},
      {R"("template": "{{ .Prompt }}")", "template: not supported: the model's own"},
      {R"("context": [1, 2])", "context: not supported: send the conversation to /api/chat"},
      {R"("images": ["aGk="])", "images: not supported: the models read and write only text"},
      {R"("width": 512)", "width: not supported"},
      {R"("_debug_render_only": true)", "_debug_render_only: not supported"},
      {R"("keep_alive": true)", "keep_alive: must be a number"},
      {R"("sytem": "x")", R"(Unknown field "sytem")"},
      {R"("prompt2": "x")", R"(Unknown field "prompt2")"},
      {R"("options": {"seed": 0.5})", "options.seed: must be of type integer"},
  };
  for (const auto& [member, error] : cases) {
    EXPECT_THAT(
        Refusal(ReadOllamaGenerate, R"("model": "m", "prompt": "hi", )" + std::string(member)),
        HasSubstr(error));
  }
  EXPECT_THAT(Refusal(ReadOllamaGenerate, R"("prompt": "hi")"), HasSubstr("model: is missing"));
  EXPECT_THAT(Refusal(ReadOllamaChat, R"("messages": [])"), HasSubstr("model: is missing"));
  // What asks for nothing is taken.
  Generate(R"("suffix": "", "template": "", "context": [], "images": [], "width": 0, "height": 0,
              "steps": 0, "_debug_render_only": false, "truncate": true, "shift": false)");
}

// docs/ollama.md holds the tables themselves. After a change: put the table that the failure shows
// into the page.
TEST(OllamaRequest, PageHasEveryTable) {
  std::ifstream file(testing::RepoPath("docs/ollama.md"));
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_THAT(page.str(), HasSubstr(FieldsAsMarkdown(OllamaOptions())));
  for (const DialectRoute& route : MakeOllamaDialect()->routes()) {
    EXPECT_THAT(page.str(),
                HasSubstr("`" + route.endpoint.method + " " + route.endpoint.path + "`"));
    if (route.endpoint.fields.empty()) continue;
    EXPECT_THAT(page.str(), HasSubstr(FieldsAsMarkdown(route.endpoint.fields)));
  }
}

}  // namespace
}  // namespace hearth
