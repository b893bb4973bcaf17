// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using Kind = ReplyEvent::Kind;
using Form = OllamaWriter::Form;

const ReplyFacts kFacts{"0a1b", "m", "f", 7, 3};
const TurnUsage kUsage{3, 9, 1, 2, 2'000, 500, 1'200};

TurnRequest Request(bool streams) {
  TurnRequest request;
  request.model = "m:latest";
  request.streams = streams;
  return request;
}

std::vector<Json> Lines(const std::string& bytes) {
  std::vector<Json> out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = bytes.find('\n', at);
    EXPECT_NE(end, std::string::npos) << "a line without an end";
    EXPECT_GT(end, at) << "an empty line, on which clients stumble";
    out.push_back(*ParseJson(bytes.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

std::string Play(OllamaWriter& writer, const std::vector<Delta>& deltas, ChoiceEnd::Why why) {
  std::string bytes = writer.Begin();
  for (const Delta& delta : deltas) bytes += writer.Add(0, delta);
  bytes += writer.EndChoice(0, {why, ""});
  return bytes + writer.End(kUsage);
}

// What the lines add up to, the way clients add them.
Json Joined(const std::vector<Json>& lines) {
  std::string content, thinking;
  JsonArray calls;
  for (const Json& line : lines) {
    const Json* message = line.Find("message");
    const Json& said = message == nullptr ? line : *message;
    content += *said.Find(message == nullptr ? "response" : "content")->string();
    if (const Json* more = said.Find("thinking")) thinking += *more->string();
    if (const Json* more = said.Find("tool_calls")) {
      calls.insert(calls.end(), more->array()->begin(), more->array()->end());
    }
  }
  return JsonObject{{"content", content}, {"thinking", thinking}, {"calls", std::move(calls)}};
}

const std::vector<Delta> kReply{
    {Kind::kReasoning, "hm", 0, {}},      {Kind::kReasoning, "m", 0, {}},
    {Kind::kContent, "Let me ", 0, {}},   {Kind::kContent, "look.", 0, {}},
    {Kind::kToolCall, "get", 0, {}},      {Kind::kToolArguments, "{\"a\"", 0, {}},
    {Kind::kToolArguments, ":1}", 0, {}}, {Kind::kToolCallEnd, "", 0, {}},
    {Kind::kToolCall, "put", 1, {}},      {Kind::kToolCallEnd, "", 1, {}},
};

TEST(OllamaWriter, StreamsWhatItTellsWhole) {
  for (const Form form : {Form::kChat, Form::kGenerate}) {
    OllamaWriter streamed(form, Request(true), kFacts), whole(form, Request(false), kFacts);
    const std::vector<Json> lines = Lines(Play(streamed, kReply, ChoiceEnd::Why::kToolCalls));
    EXPECT_EQ(Play(whole, kReply, ChoiceEnd::Why::kToolCalls), "");
    const Json told = *ParseJson(whole.Whole(kUsage));
    EXPECT_EQ(Joined(lines), Joined({told}));
    EXPECT_EQ(*Joined(lines).Find("thinking")->string(), "hmm");
    ASSERT_EQ(lines.size(), 7u);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(*lines[i].Find("done"), Json(i == 6)) << i;
      EXPECT_EQ(*lines[i].Find("model")->string(), "m:latest") << "as it was asked for";
      EXPECT_THAT(*lines[i].Find("created_at")->string(), ::testing::EndsWith("Z"));
    }
    // The end is the same in both, but for the time.
    for (const char* name : {"done_reason", "total_duration", "load_duration", "prompt_eval_count",
                             "prompt_eval_duration", "eval_count", "eval_duration"}) {
      ASSERT_NE(told.Find(name), nullptr) << name;
      EXPECT_EQ(*told.Find(name), *lines.back().Find(name)) << name;
      EXPECT_EQ(lines[0].Find(name), nullptr) << name;
    }
  }
}

TEST(OllamaWriter, WritesEachPieceWhereItsFormHasIt) {
  OllamaWriter chat(Form::kChat, Request(true), kFacts);
  const std::vector<Json> lines = Lines(Play(chat, kReply, ChoiceEnd::Why::kToolCalls));
  EXPECT_EQ(WriteJson(*lines[0].Find("message")),
            R"({"role":"assistant","content":"","thinking":"hm"})");
  EXPECT_EQ(WriteJson(*lines[2].Find("message")), R"({"role":"assistant","content":"Let me "})");
  EXPECT_EQ(WriteJson(*lines[4].Find("message")),
            R"({"role":"assistant","content":"","tool_calls":[{"id":"call_0a1b00","function":)"
            R"({"index":0,"name":"get","arguments":{"a":1}}}]})");
  EXPECT_EQ(WriteJson(*lines[6].Find("message")), R"({"role":"assistant","content":""})");
  OllamaWriter generate(Form::kGenerate, Request(true), kFacts);
  const std::vector<Json> others = Lines(Play(generate, kReply, ChoiceEnd::Why::kEnd));
  EXPECT_EQ(others[0].Find("message"), nullptr);
  EXPECT_EQ(*others[0].Find("response")->string(), "");
  EXPECT_EQ(*others[0].Find("thinking")->string(), "hm");
  EXPECT_EQ(*others[2].Find("response")->string(), "Let me ");
}

TEST(OllamaWriter, TellsTimesInNanoseconds) {
  OllamaWriter writer(Form::kChat, Request(false), kFacts);
  Play(writer, kReply, ChoiceEnd::Why::kEnd);
  const std::string whole = writer.Whole(kUsage);
  EXPECT_THAT(whole, HasSubstr(R"("done":true,"done_reason":"stop","total_duration":2000000,)"
                               R"("load_duration":0,"prompt_eval_count":3,)"
                               R"("prompt_eval_duration":500000,"eval_count":9,)"
                               R"("eval_duration":1200000)"));
  // Nobody divides by zero.
  EXPECT_THAT(writer.Whole({3, 1, 0, 0}), HasSubstr(R"("eval_duration":1})"));
}

TEST(OllamaWriter, SaysWhyItEnded) {
  for (const auto& [why, word] : {std::pair(ChoiceEnd::Why::kEnd, "stop"),
                                  {ChoiceEnd::Why::kStopString, "stop"},
                                  {ChoiceEnd::Why::kToolCalls, "stop"},
                                  {ChoiceEnd::Why::kLength, "length"}}) {
    OllamaWriter writer(Form::kChat, Request(true), kFacts);
    const std::vector<Json> lines = Lines(Play(writer, {}, why));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(*lines[0].Find("done_reason")->string(), word);
  }
}

TEST(OllamaWriter, DoesNotPassOffHalfACallAsWhole) {
  const std::vector<Delta> half{{Kind::kToolCall, "get", 0, {}},
                                {Kind::kToolArguments, "{\"a\": ", 0, {}}};
  OllamaWriter cut(Form::kChat, Request(true), kFacts);
  const std::vector<Json> lines = Lines(Play(cut, half, ChoiceEnd::Why::kLength));
  EXPECT_EQ(lines.back().Find("message")->Find("tool_calls"), nullptr);
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_EQ(*lines.back().Find("done_reason")->string(), "length");
  EXPECT_EQ(cut.Whole(kUsage).find("tool_calls"), std::string::npos);
  // One that ended by itself is not lost, and cannot be mistaken for a good one.
  OllamaWriter odd(Form::kChat, Request(true), kFacts);
  EXPECT_THAT(Play(odd, half, ChoiceEnd::Why::kEnd),
              HasSubstr(R"("arguments":{"_incomplete":"{\"a\": "})"));
  EXPECT_THAT(odd.Whole(kUsage), HasSubstr(R"({"_incomplete":"{\"a\": "})"));
}

// The end of a reply ends its last call, whole or not.
TEST(OllamaWriter, KnowsAnEmptyCallFromACutOne) {
  const std::vector<Delta> empty{{Kind::kToolCall, "ge", 0, {}}, {Kind::kToolCallEnd, "", 0, {}}};
  OllamaWriter cut(Form::kChat, Request(true), kFacts);
  EXPECT_EQ(Play(cut, empty, ChoiceEnd::Why::kLength).find("tool_calls"), std::string::npos);
  OllamaWriter whole(Form::kChat, Request(true), kFacts);
  EXPECT_THAT(Play(whole, empty, ChoiceEnd::Why::kToolCalls),
              HasSubstr(R"("name":"ge","arguments":{}})"));
}

TEST(OllamaWriter, PassesArgumentsOnAsTheyAre) {
  const std::string big(400, '9');
  const std::vector<Delta> call{
      {Kind::kToolCall, "get", 0, {}},
      {Kind::kToolArguments, "{ \"n\" :\n" + big + ",\r\n\t\"s\": \"a \\\" b\\n  c\\\\\" }", 0, {}},
      {Kind::kToolCallEnd, "", 0, {}}};
  OllamaWriter writer(Form::kChat, Request(true), kFacts);
  const std::string bytes = Play(writer, call, ChoiceEnd::Why::kToolCalls);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), 2);
  const std::string expected = "\"arguments\":{\"n\":" + big + ",\"s\":\"a \\\" b\\n  c\\\\\"}}";
  EXPECT_THAT(bytes, HasSubstr(expected));
  EXPECT_THAT(writer.Whole(kUsage), HasSubstr(expected));
}

TEST(OllamaError, NamesTheFieldAtFault) {
  ApiError error;
  error.message = "failed to compile";
  EXPECT_EQ(WriteJson(OllamaError(error)), R"({"error":"failed to compile"})");
  error.param = "format";
  EXPECT_EQ(WriteJson(OllamaError(error)), R"({"error":"format: failed to compile"})");
  error.message = "failed to compile {\"format\": 1}";
  EXPECT_THAT(WriteJson(OllamaError(error)), ::testing::StartsWith(R"({"error":"format: failed)"));
  EXPECT_EQ(WriteJson(OllamaError(UnknownField("x"))), R"({"error":"Unknown field \"x\""})");
  error.message = "response_format: failed to compile";
  EXPECT_EQ(WriteJson(OllamaError(error)), R"({"error":"format: failed to compile"})");
  error.message = "format: failed to compile";
  EXPECT_EQ(WriteJson(OllamaError(error)), R"({"error":"format: failed to compile"})");
}

TEST(OllamaWriter, TellsACallThatHasNoEnd) {
  const std::vector<Delta> open{{Kind::kToolCall, "get", 0, {}},
                                {Kind::kToolArguments, "{\"a\":2}", 0, {}}};
  OllamaWriter writer(Form::kChat, Request(true), kFacts);
  const std::vector<Json> lines = Lines(Play(writer, open, ChoiceEnd::Why::kToolCalls));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(WriteJson(lines[0]), HasSubstr(R"("arguments":{"a":2})"));
}

TEST(OllamaWriter, TellsLogprobsWithTheirText) {
  TurnRequest request = Request(true);
  request.sampling.num_logprobs = 1;
  OllamaWriter writer(Form::kChat, request, kFacts);
  const AnswerLogprob one{{"a", -0.5f, 1}, {{"b", -1.5f, 2}}};
  const std::vector<Json> lines =
      Lines(Play(writer, {{Kind::kContent, "a", 0, {one}}}, ChoiceEnd::Why::kEnd));
  const std::string expected = R"([{"token":"a","logprob":-0.5,"bytes":[97],)"
                               R"("top_logprobs":[{"token":"b","logprob":-1.5,"bytes":[98]}]}])";
  EXPECT_EQ(WriteJson(*lines[0].Find("logprobs")), expected);
  EXPECT_EQ(lines[1].Find("logprobs"), nullptr);
  request.streams = false;
  OllamaWriter whole(Form::kChat, request, kFacts);
  Play(whole, {{Kind::kContent, "a", 0, {one}}}, ChoiceEnd::Why::kEnd);
  EXPECT_EQ(WriteJson(*ParseJson(whole.Whole(kUsage))->Find("logprobs")), expected);
}

TEST(OllamaWriter, IsALineOfJsonWhateverHappens) {
  OllamaWriter writer(Form::kChat, Request(true), kFacts);
  EXPECT_STREQ(writer.stream_type(), "application/x-ndjson");
  const std::vector<Json> ping = Lines(writer.Ping());
  ASSERT_EQ(ping.size(), 1u);
  EXPECT_EQ(*ping[0].Find("done"), Json(false));
  EXPECT_EQ(*ping[0].Find("message")->Find("content")->string(), "");
  ApiError error;
  error.message = "the request timed out";
  EXPECT_EQ(writer.Fail(error), "{\"error\":\"the request timed out\"}\n");
}

TEST(OllamaLoaded, SaysThatNothingWasSaid) {
  const Json chat = OllamaLoaded("m", true, "load"), generate = OllamaLoaded("m", false, "unload");
  EXPECT_EQ(*chat.Find("done_reason")->string(), "load");
  EXPECT_EQ(*chat.Find("message")->Find("content")->string(), "");
  EXPECT_EQ(*generate.Find("response")->string(), "");
  EXPECT_EQ(*generate.Find("done"), Json(true));
}

TEST(OllamaEmbeddingWriter, WritesBothForms) {
  TurnRequest request = Request(false);
  request.plain_prompts = {std::string("a"), std::string("b")};
  OllamaEmbeddingWriter all(request, false);
  all.AddEmbedding(1, {0.5f});
  all.AddEmbedding(0, {1.0f, -0.25f});
  EXPECT_EQ(all.Whole(kUsage),
            R"({"model":"m:latest","embeddings":[[1.0,-0.25],[0.5]],"total_duration":2000000,)"
            R"("load_duration":0,"prompt_eval_count":3})");
  request.plain_prompts.pop_back();
  OllamaEmbeddingWriter one(request, true);
  one.AddEmbedding(0, {1.0f});
  EXPECT_EQ(one.Whole(kUsage), R"({"embedding":[1.0]})");
}

}  // namespace
}  // namespace hearth
