// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Validate, NamesTheFieldItsValueAndItsRange) {
  EXPECT_TRUE(Validate({}, 100).ok());
  const Status hot = Validate({.temperature = 101}, 100);
  EXPECT_EQ(hot.code(), Code::kInvalid);
  EXPECT_EQ(hot.message(), "temperature: 101 is not between 0 and 100");
}

TEST(Validate, EveryNumberHasTwoEndsAndNoNan) {
  struct Field {
    std::string name;
    float SamplingParams::* field;
    float low, high;
  };
  const Field fields[] = {
      {"temperature", &SamplingParams::temperature, 0, 100},
      {"typical_p", &SamplingParams::typical_p, 0, 1},
      {"top_p", &SamplingParams::top_p, 0, 1},
      {"min_p", &SamplingParams::min_p, 0, 1},
      {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
      {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
      {"repetition_penalty", &SamplingParams::repetition_penalty, 0.0101f, 100},
      {"frequency_penalty", &SamplingParams::frequency_penalty, -2, 2},
      {"presence_penalty", &SamplingParams::presence_penalty, -2, 2},
      {"dry_multiplier", &SamplingParams::dry_multiplier, 0, 100},
      {"dry_base", &SamplingParams::dry_base, 1, 10},
  };
  for (const auto& [name, field, low, high] : fields) {
    const auto with = [member = field](float value) {
      SamplingParams params;
      params.*member = value;
      return Validate(params, 100);
    };
    EXPECT_TRUE(with(low).ok()) << name;
    EXPECT_TRUE(with(high).ok()) << name;
    for (const float wrong : {low - 0.01f, high + 0.01f, 1e30f, -INFINITY, INFINITY, NAN}) {
      EXPECT_EQ(with(wrong).code(), Code::kInvalid) << name << " " << wrong;
      EXPECT_THAT(with(wrong).message(), StartsWith(name + ": ")) << wrong;
      EXPECT_THAT(with(wrong).message(), HasSubstr("is not between"));
    }
  }
}

TEST(Validate, EveryCountHasTwoEnds) {
  struct Field {
    std::string name;
    int SamplingParams::* field;
    int low, high;
  };
  const Field fields[] = {
      {"top_k", &SamplingParams::top_k, 0, 1 << 24},
      {"penalty_window", &SamplingParams::penalty_window, 0, 1 << 24},
      {"dry_allowed_length", &SamplingParams::dry_allowed_length, 1, 1024},
      {"dry_window", &SamplingParams::dry_window, 1, 1 << 17},
      {"min_tokens", &SamplingParams::min_tokens, 0, 1 << 24},
      {"logprobs", &SamplingParams::num_logprobs, -1, 20},
      {"prompt_logprobs", &SamplingParams::num_prompt_logprobs, -1, 20},
  };
  for (const auto& [name, field, low, high] : fields) {
    const auto with = [member = field](int value) {
      SamplingParams params;
      params.*member = value;
      return Validate(params, 100);
    };
    EXPECT_TRUE(with(low).ok()) << name;
    EXPECT_TRUE(with(high).ok()) << name;
    EXPECT_THAT(with(low - 1).message(), StartsWith(name + ": "));
    EXPECT_THAT(with(high + 1).message(), StartsWith(name + ": "));
  }
}

TEST(Validate, TokensAreInTheVocabularyAndListsAreShort) {
  SamplingParams params;
  params.logit_bias = {{100, 1.0f}};
  EXPECT_EQ(Validate(params, 100).message(), "logit_bias: token 100 is not between 0 and 99");
  params.logit_bias = {{99, 101.0f}};
  EXPECT_THAT(Validate(params, 100).message(), StartsWith("logit_bias: 101"));
  params.logit_bias.assign(1025, {0, 0.0f});
  EXPECT_EQ(Validate(params, 100).message(), "logit_bias: 1025 entries; the limit is 1024");
  params.logit_bias.clear();
  for (auto* list : {&params.stop_tokens, &params.eos_tokens, &params.dry_breakers}) {
    *list = {0, 99};
    EXPECT_TRUE(Validate(params, 100).ok());
    *list = {-1};
    EXPECT_THAT(Validate(params, 100).message(), HasSubstr("token -1 is not between 0 and 99"));
    list->assign(65, 0);
    EXPECT_THAT(Validate(params, 100).message(), HasSubstr("65 entries"));
    list->clear();
  }
  params.bad_words = {{1, 2}, {}};
  EXPECT_EQ(Validate(params, 100).message(), "bad_words: an entry has no tokens");
  params.bad_words = {{1, 100}};
  EXPECT_THAT(Validate(params, 100).message(), StartsWith("bad_words: token 100"));
  params.bad_words = {std::vector<Token>(65, 1)};
  EXPECT_THAT(Validate(params, 100).message(), StartsWith("bad_words: 65 entries"));
  params.bad_words.assign(1025, {1});
  EXPECT_THAT(Validate(params, 100).message(), StartsWith("bad_words: 1025 entries"));
}

}  // namespace
}  // namespace hearth
