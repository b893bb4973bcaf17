// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TurnRequest Read(const std::string& options) {
  TurnRequest turn;
  const ApiStatus status = ReadOllamaOptions(*ParseJson(options), turn);
  EXPECT_TRUE(status.ok()) << options << (status.ok() ? "" : status.error().message);
  return turn;
}

std::string Refusal(const std::string& options) {
  TurnRequest turn;
  const ApiStatus status = ReadOllamaOptions(*ParseJson(options), turn);
  EXPECT_FALSE(status.ok()) << options;
  return status.ok() ? "" : status.error().message;
}

TEST(OllamaOptions, BecomeSampling) {
  const TurnRequest turn = Read(R"({"num_predict": 7, "temperature": 0.5, "top_k": 40, "top_p": 0.9,
      "min_p": 0.1, "typical_p": 0.7, "seed": 42, "repeat_penalty": 1.5, "repeat_last_n": 33,
      "presence_penalty": 1.25, "frequency_penalty": -0.5, "stop": ["a", "b"]})");
  const SamplingParams& sampling = turn.sampling;
  EXPECT_EQ(turn.max_tokens, 7);
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.top_p, 0.9f);
  EXPECT_EQ(sampling.min_p, 0.1f);
  EXPECT_EQ(sampling.typical_p, 0.7f);
  EXPECT_EQ(sampling.seed, 42u);
  EXPECT_TRUE(turn.has_seed);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.penalty_window, 33);
  EXPECT_EQ(sampling.presence_penalty, 1.25f);
  EXPECT_EQ(sampling.frequency_penalty, -0.5f);
  EXPECT_THAT(turn.stops, ElementsAre("a", "b"));
  EXPECT_THAT(turn.ignored_fields, IsEmpty());
}

TEST(OllamaOptions, ThatAreNotGivenChangeNothing) {
  const TurnRequest turn = Read("{}"), untouched;
  EXPECT_EQ(turn.max_tokens, 0);
  EXPECT_FALSE(turn.has_seed);
  EXPECT_EQ(turn.sampling.top_k, untouched.sampling.top_k);
  EXPECT_EQ(turn.sampling.penalty_window, untouched.sampling.penalty_window);
}

TEST(OllamaOptions, MeanWhatOllamaMeansByOddValues) {
  for (const char* unlimited : {"-2", "-1", "0"}) {
    EXPECT_EQ(Read(Printf(R"({"num_predict": %s})", unlimited)).max_tokens, 0);
  }
  EXPECT_FALSE(Read(R"({"seed": -1})").has_seed);
  EXPECT_TRUE(Read(R"({"seed": 0})").has_seed);
  EXPECT_EQ(Read(R"({"top_k": -1})").sampling.top_k, 0);
  EXPECT_THAT(Read(R"({"stop": "x"})").stops, ElementsAre("x"));
  EXPECT_THAT(Read(R"({"stop": []})").stops, IsEmpty());
  // The penalties see all tokens, or none and are off.
  EXPECT_EQ(Read(R"({"repeat_last_n": -1})").sampling.penalty_window, 0);
  const SamplingParams off =
      Read(R"({"repeat_last_n": 0, "repeat_penalty": 1.5, "presence_penalty": 1,
               "frequency_penalty": 1})")
          .sampling;
  EXPECT_EQ(off.repetition_penalty, 1);
  EXPECT_EQ(off.presence_penalty, 0);
  EXPECT_EQ(off.frequency_penalty, 0);
  EXPECT_TRUE(Read(R"({"seed": null, "temperature": null})").ignored_fields.empty());
}

TEST(OllamaOptions, OfTheMachineAreNamedAsIgnored) {
  EXPECT_THAT(Read(R"({"num_thread": 8, "num_ctx": 8192, "temperature": 1, "num_gpu": 99,
                       "use_mmap": true, "mirostat": 0, "tfs_z": 1, "mirostat_tau": 5.0})")
                  .ignored_fields,
              ElementsAre("options.mirostat_tau", "options.num_ctx", "options.num_gpu",
                          "options.num_thread", "options.use_mmap"));
}

TEST(OllamaOptions, OfOtherSamplersAreRefused) {
  EXPECT_THAT(Refusal(R"({"mirostat": 1})"), HasSubstr("options.mirostat: not supported"));
  EXPECT_THAT(Refusal(R"({"tfs_z": 0.5})"), HasSubstr("options.tfs_z: not supported"));
}

TEST(OllamaOptions, AreBlamedByTheirPlace) {
  EXPECT_EQ(Refusal(R"({"temprature": 1})"),
            R"(Unknown field "options.temprature"; did you mean "temperature"?)");
  EXPECT_EQ(Refusal(R"({"colour": 1})"), R"(Unknown field "options.colour")");
  EXPECT_EQ(Refusal(R"({"temperature": "hot"})"), "options.temperature: must be of type number");
  EXPECT_THAT(Refusal(R"({"top_p": 1.5})"), HasSubstr("options.top_p: its value must be between"));
  EXPECT_THAT(Refusal(R"({"num_ctx": "8k"})"), HasSubstr("options.num_ctx: must be of type"));
  EXPECT_THAT(Refusal(R"({"stop": 3})"), HasSubstr("options.stop: must be a string"));
  EXPECT_THAT(Refusal(R"({"stop": ["a", 3]})"), HasSubstr("options.stop: must be a string"));
  EXPECT_THAT(Refusal(R"({"stop": [""]})"), HasSubstr("options.stop: "));
  TurnRequest turn;
  const ApiStatus status = ReadOllamaOptions(*ParseJson(R"({"min_p": 2})"), turn);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().param, "options.min_p");
}

TEST(OllamaOptions, OfEmbeddingsAreAllIgnored) {
  TurnRequest turn;
  ASSERT_TRUE(IgnoreOllamaOptions(*ParseJson(R"({"temperature": 1, "num_ctx": 512})"), turn).ok());
  EXPECT_THAT(turn.ignored_fields, ElementsAre("options.num_ctx", "options.temperature"));
  EXPECT_FALSE(IgnoreOllamaOptions(*ParseJson(R"({"num_ctxx": 512})"), turn).ok());
}

}  // namespace
}  // namespace hearth
