// SPDX-License-Identifier: Apache-2.0
#include "app/open_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/gguf_builder.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::TempDir;

Result<SamplingDefaults> OfConfig(const std::string& json) {
  const TempDir folder;
  folder.Write("generation_config.json", json);
  HEARTH_ASSIGN(const TextSource source, TextSource::Open(folder.path()));
  return OpenSamplingDefaults(source);
}

Result<SamplingDefaults> OfGguf(GgufBuilder& builder) {
  const TempDir folder;
  folder.Write("m.gguf", builder.AddString("general.architecture", "llama").Build());
  HEARTH_ASSIGN(const TextSource source, TextSource::Open(folder.Path("m.gguf")));
  return OpenSamplingDefaults(source);
}

TEST(OpenSampling, ReadsGenerationConfig) {
  auto read = OfConfig(R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95,
      "min_p": 0.01, "repetition_penalty": 1.05, "eos_token_id": [1, 2], "transformers_version": "4"})");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->temperature, 0.6);
  EXPECT_EQ(read->top_k, 20);
  EXPECT_EQ(read->top_p, 0.95);
  EXPECT_EQ(read->min_p, 0.01);
  EXPECT_EQ(read->repetition_penalty, 1.05);
  EXPECT_EQ(read->source, "generation_config.json");
}

TEST(OpenSampling, ReadsGgufKeys) {
  GgufBuilder builder;
  builder.Add("general.sampling.temp", GgufType::kF32, 0.6f)
      .Add("general.sampling.top_k", GgufType::kI32, int32_t{20})
      .Add("general.sampling.top_p", GgufType::kF32, 0.95f)
      .Add("general.sampling.min_p", GgufType::kF32, 0.01f)
      .Add("general.sampling.penalty_repeat", GgufType::kF32, 1.05f);
  auto read = OfGguf(builder);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->temperature, 0.6) << "the decimal that was meant, not the float";
  EXPECT_EQ(read->top_k, 20);
  EXPECT_EQ(read->top_p, 0.95);
  EXPECT_EQ(read->min_p, 0.01);
  EXPECT_EQ(read->repetition_penalty, 1.05);
  EXPECT_EQ(read->source, "general.sampling");
}

TEST(OpenSampling, PublishersAreAskedWhereTheFileSaysNothing) {
  GgufBuilder silent;
  silent.AddString("general.name", "Qwen3 8B");
  auto read = OfGguf(silent);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->temperature, 0.6);
  EXPECT_EQ(DescribeSampling(*read),
            "temperature 0.6 top_k 20 top_p 0.95 (Qwen3's generation_config.json)");
  GgufBuilder speaks;
  speaks.AddString("general.name", "Qwen3 8B").Add("general.sampling.temp", GgufType::kF32, 0.5f);
  auto own = OfGguf(speaks);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->source, "general.sampling");
  EXPECT_EQ(own->temperature, 0.5);
  EXPECT_FALSE(own->top_k.has_value()) << "a file's recommendation is not mixed with another's";
  GgufBuilder odd;
  odd.Add("general.name", GgufType::kI32, int32_t{3});
  auto nobody = OfGguf(odd);
  ASSERT_TRUE(nobody.ok()) << nobody.status().message();
  EXPECT_EQ(nobody->source, "") << "a name that is no text names nobody";
  EXPECT_EQ(DescribeSampling(*nobody), "");
}

TEST(OpenSampling, FilesMaySayNothing) {
  for (const char* config : {"{}", R"({"eos_token_id": 2, "temperature": null})"}) {
    auto read = OfConfig(config);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->source, "") << config;
    EXPECT_FALSE(read->temperature.has_value());
  }
  GgufBuilder builder;
  EXPECT_EQ(OfGguf(builder)->source, "");
  const TempDir empty;
  auto source = TextSource::Open(empty.path());
  EXPECT_EQ(OpenSamplingDefaults(*source)->source, "");
}

TEST(OpenSampling, NotSamplingIsTemperatureZero) {
  EXPECT_EQ(OfConfig(R"({"do_sample": false, "temperature": 0.9})")->temperature, 0.0);
  EXPECT_EQ(OfConfig(R"({"do_sample": true})")->source, "") << "no temperature is named";
}

TEST(OpenSampling, AllTokensHaveTwoNames) {
  EXPECT_EQ(OfConfig(R"({"top_k": -1})")->top_k, 0);
  EXPECT_EQ(OfConfig(R"({"top_k": 0})")->top_k, 0);
}

TEST(OpenSampling, NonsenseNamesFileAndKey) {
  for (const auto& [config, words] : std::vector<std::pair<const char*, const char*>>{
           {R"({"temperature": -1})", "temperature: expected a number from 0 to 2, found -1"},
           {R"({"temperature": "hot"})", "temperature: expected a number"},
           {R"({"top_k": 2.5})", "top_k: expected a whole number, found 2.5"},
           {R"({"top_p": 1.5})", "top_p: expected a number from 0 to 1"},
           {R"({"min_p": -0.5})", "min_p: expected a number from 0 to 1"},
           {R"({"repetition_penalty": 0})", "repetition_penalty: expected"},
           {R"({"do_sample": 1})", "do_sample: expected true or false"},
           {"[]", "expected a JSON object"},
           {"{", "generation_config.json"}}) {
    auto read = OfConfig(config);
    ASSERT_FALSE(read.ok()) << config;
    EXPECT_THAT(read.status().message(), HasSubstr("generation_config.json: "));
    EXPECT_THAT(read.status().message(), HasSubstr(words));
  }
  GgufBuilder builder;
  builder.Add("general.sampling.temp", GgufType::kF32, 3.0f);
  EXPECT_THAT(OfGguf(builder).status().message(),
              HasSubstr("m.gguf: general.sampling.temp: expected a number from 0 to 2, found 3"));
}

}  // namespace
}  // namespace hearth
