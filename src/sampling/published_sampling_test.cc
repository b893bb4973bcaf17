// SPDX-License-Identifier: Apache-2.0
#include "sampling/published_sampling.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace hearth {
namespace {

// "0.7 0.8 20 1.05", with "-" for what stays open.
std::string Of(std::string_view name) {
  const SamplingDefaults found = PublishedSampling(name);
  EXPECT_EQ(found.source.empty(), !found.temperature.has_value()) << name;
  EXPECT_FALSE(found.min_p.has_value()) << name;
  std::string out;
  const auto add = [&out](const auto& value) {
    char text[32] = "-";
    if (value) std::snprintf(text, sizeof text, "%g", static_cast<double>(*value));
    out += (out.empty() ? "" : " ") + std::string(text);
  };
  add(found.temperature);
  add(found.top_p);
  add(found.top_k);
  add(found.repetition_penalty);
  return out;
}

constexpr const char* kNone = "- - - -";

// Names as published GGUF files have them.
TEST(PublishedSampling, IsFoundByTheNamesOfPublishedFiles) {
  EXPECT_EQ(Of("Smollm2 135M 8k Lc100K Mix1 Ep2"), "0.2 0.9 - -");
  EXPECT_EQ(Of("Smollm2 1.7B 8k Mix7 Ep2 v2"), "0.2 0.9 - -");
  EXPECT_EQ(Of("SmolLM2 360M Instruct"), "0.2 0.9 - -");
  EXPECT_EQ(Of("Qwen2.5 7B Instruct"), "0.7 0.8 20 1.05");
  EXPECT_EQ(Of("qwen2.5-0.5b-instruct"), "0.7 0.8 20 -");
  EXPECT_EQ(Of("Qwen2.5 Coder 7B Instruct"), "0.7 0.8 20 -");
  EXPECT_EQ(Of("Qwen3 8B"), "0.6 0.95 20 -");
  EXPECT_EQ(Of("Qwen_Qwen3-4B"), "0.6 0.95 20 -");
  EXPECT_EQ(Of("Qwen3 30B A3B"), "0.6 0.95 20 -");
  EXPECT_EQ(Of("Qwen3-4B-Instruct-2507"), "0.7 0.8 20 -");
  EXPECT_EQ(Of("Qwen3-4B-Thinking-2507"), "0.6 0.95 20 -");
  EXPECT_EQ(Of("Llama 3.2 1B Instruct"), "0.6 0.9 - -");
  EXPECT_EQ(Of("Meta Llama 3.1 8B Instruct"), "0.6 0.9 - -");
  EXPECT_EQ(Of("Gpt Oss 20b"), "1 1 - -");
  EXPECT_EQ(Of("openai/gpt-oss-120b"), "1 1 - -");
}

TEST(PublishedSampling, SaysWhereItIsFrom) {
  EXPECT_EQ(PublishedSampling("Smollm2 135M 8k Lc100K Mix1 Ep2").source, "SmolLM2's model card");
  EXPECT_EQ(PublishedSampling("Qwen3 8B").source, "Qwen3's generation_config.json");
  EXPECT_EQ(PublishedSampling("Qwen3-4B-Thinking-2507").source, "Qwen3-2507's model card");
  EXPECT_EQ(PublishedSampling("Llama 3.3 70B Instruct").source,
            "Meta's example of a chat with Llama 3");
  EXPECT_EQ(PublishedSampling("Qwen4 8B").source, "");
}

TEST(PublishedSampling, IsOnlyThePublishersOwn) {
  for (const char* name : {"",
                           "llama",
                           "Llama 3.2 1B",
                           "Qwen2.5 7B",
                           "SmolLM2 135M",  // base models
                           "Qwen3 8B Base",
                           "Qwen3 Embedding 8B",
                           "Qwen3 VL 8B",
                           "Qwen3.5 8B",
                           "Dolphin 3.0 Llama 3.1 8B",
                           "Qwen3 8B Abliterated",
                           "Llama 3.1 8B Instruct Uncensored",
                           "Hermes 3 Llama 3.1 8B",
                           "DeepSeek R1 0528 Qwen3 8B",
                           "Tiny Oss o200k",
                           "Smollm2 1.7B 8k Lc100K Mix1 Ep2",  // another size's training
                           "Qwen3",
                           "Llama 3.2 Instruct",
                           "Gpt Oss",
                           "Qwen3 b",
                           "Qwen3 .b",
                           "Qwen3 a"}) {
    EXPECT_EQ(Of(name), kNone) << name;
  }
  EXPECT_EQ(Of("Qwen3 8B " + std::string(200, ' ')), kNone) << "a name of any length";
}

}  // namespace
}  // namespace hearth
