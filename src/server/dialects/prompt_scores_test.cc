// SPDX-License-Identifier: Apache-2.0
// What is asked of prompts, as it goes over the wire; that the numbers are right is shown against
// float64 in tests/server.
#include "server/dialects/prompt_scores.h"

#include <gtest/gtest.h>

#include "server/dialects/completions/completion_dialect.h"
#include "server/dialects/embeddings/embedding_dialect.h"
#include "server/turns/turn_limits.h"

namespace hearth {
namespace {

Json Parsed(const std::string& text) {
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status().message() << ": " << text;
  return json.ok() ? *std::move(json) : Json();
}

CompletionRequest Read(const std::string& body) {
  ApiResult<CompletionRequest> read = ReadCompletionRequest(Parsed(body));
  if (!read.ok()) ADD_FAILURE() << read.error().message;
  return *std::move(read);
}

std::string ParamOf(const std::string& body) {
  const ApiResult<EmbeddingRequest> read = ReadEmbeddingRequest(Parsed(body));
  return read.ok() ? "" : read.error().param;
}

AnswerLogprob Said(const char* bytes, Token token, float logprob, int rank) {
  return {{bytes, logprob, token}, {{"z", -0.25f, 9}, {bytes, logprob, token}}, rank};
}

const std::vector<AnswerLogprob> kPrompt = {Said("b", 2, -1, 2), Said("c", 3, -2, 2)};

TEST(PromptScores, AnEchoComesBeforeTheReply) {
  const CompletionRequest request =
      Read(R"({"prompt": "abc", "echo": true, "logprobs": 1, "prompt_logprobs": 2})");
  EXPECT_EQ(request.turn.sampling.num_prompt_logprobs, 2);
  ReplyFacts facts;
  facts.echoes = {{{"<s>", "b", "c"}, 1}};
  CompletionWriter writer(request.turn, request.num_prompt_logprobs, facts);
  EXPECT_EQ(writer.AddPrompt(0, kPrompt), "");
  Delta delta;
  delta.text = "d";
  delta.logprobs = {Said("d", 4, -0.5f, 0)};
  writer.Add(0, delta);
  writer.EndChoice(0, {});
  const Json whole = Parsed(writer.Whole({}));
  const Json& choice = (*whole.Find("choices")->array())[0];
  EXPECT_EQ(*choice.Find("text")->string(), "bcd");
  EXPECT_EQ(WriteJson(*choice.Find("logprobs")),
            R"({"tokens":["<s>","b","c","d"],"token_logprobs":[null,-1.0,-2.0,-0.5],)"
            R"("top_logprobs":[null,{"z":-0.25},{"z":-0.25},{"z":-0.25,"d":-0.5}],)"
            R"("text_offset":[0,0,1,2]})");
  EXPECT_EQ(WriteJson(*choice.Find("prompt_logprobs")),
            R"([null,{"2":{"logprob":-1.0,"rank":2,"decoded_token":"b"},)"
            R"("9":{"logprob":-0.25,"rank":1,"decoded_token":"z"}},)"
            R"({"3":{"logprob":-2.0,"rank":2,"decoded_token":"c"},)"
            R"("9":{"logprob":-0.25,"rank":1,"decoded_token":"z"}}])");
}

TEST(PromptScores, WhatIsAskedOfThePromptFollowsFromEchoAndLogprobs) {
  EXPECT_EQ(Read(R"({"prompt": "a", "logprobs": 3})").turn.sampling.num_prompt_logprobs, -1);
  EXPECT_EQ(Read(R"({"prompt": "a", "echo": true})").turn.sampling.num_prompt_logprobs, -1);
  const TurnRequest both = Read(R"({"prompt": "a", "echo": true, "logprobs": 3})").turn;
  EXPECT_EQ(both.sampling.num_prompt_logprobs, 3);
  EXPECT_FALSE(both.prompt_only);
  EXPECT_TRUE(Read(R"({"prompt": "a", "max_tokens": 0})").turn.prompt_only);
}

TEST(PromptScores, AreBoundedInNumber) {
  TurnRequest request;
  request.scores_field = "logprobs";
  request.prompt_only = true;
  const auto hold = [&request](int64_t num_tokens) {
    return HoldToLimits({1 << 30, {}}, {std::vector<Token>(static_cast<size_t>(num_tokens))},
                        request);
  };
  EXPECT_TRUE(hold(1 << 20).ok());
  request.sampling.num_prompt_logprobs = 2;
  EXPECT_TRUE(hold(kMaxPromptScores / 3).ok());
  const auto refused = hold(kMaxPromptScores / 3 + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "logprobs");
  EXPECT_EQ(refused.error().status, 400);
}

TEST(Embeddings, AreWrittenAsAsked) {
  for (const char* format : {"float", "base64"}) {
    const std::string body =
        std::string(R"({"input": ["a", "b"], "encoding_format": ")") + format + R"("})";
    ApiResult<EmbeddingRequest> read = ReadEmbeddingRequest(Parsed(body));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(read->turn.prompt_only && read->turn.pools);
    ReplyFacts facts;
    facts.model = "m";
    EmbeddingWriter writer(read->turn, read->is_base64, facts);
    writer.AddEmbedding(1, {0.5f});
    writer.AddEmbedding(0, {1.0f, -2.0f});
    TurnUsage usage;
    usage.prompt_tokens = 3;
    const bool is_float = format == std::string("float");
    EXPECT_EQ(
        writer.Whole(usage),
        std::string(R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":)") +
            (is_float ? "[1.0,-2.0]" : R"("AACAPwAAAMA=")") +
            R"(},{"object":"embedding","index":1,"embedding":)" +
            (is_float ? "[0.5]" : R"("AAAAPw==")") +
            R"(}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}})");
  }
}

TEST(Embeddings, RefuseByName) {
  EXPECT_EQ(ParamOf(R"({"input": "a", "dimensions": 3})"), "dimensions");
  EXPECT_EQ(ParamOf(R"({"input": "a", "encoding_format": "hex"})"), "encoding_format");
  EXPECT_EQ(ParamOf(R"({"input": []})"), "input");
  EXPECT_EQ(ParamOf(R"({"input": [["a"]]})"), "input");
  EXPECT_EQ(ParamOf(R"({"model": "m"})"), "input");
  EXPECT_EQ(ParamOf(R"({"input": [1, 2]})"), "");
}

}  // namespace
}  // namespace hearth
