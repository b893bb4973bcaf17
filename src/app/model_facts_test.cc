// SPDX-License-Identifier: Apache-2.0
#include "app/model_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/open_model.h"
#include "templates/jinja_format.h"
#include "testing/byte_tokenizer.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"
#include "text/harmony.h"

namespace hearth {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::GgufBuilder;
using ::testing::Pair;
using testing::TempDir;

constexpr const char* kTemplate = "{% for m in messages %}{{ m.content }}{% endfor %}";

struct Opened {
  Model model;
  std::string path;
};

Opened Open(const TempDir& folder, const std::string& name) {
  GgufBuilder b = testing::TinyModel("llama");
  b.AddString("general.license", "apache-2.0").AddString("tokenizer.chat_template", kTemplate);
  const std::string path = folder.Write(name, b.Build()).Path(name);
  return {*OpenModel(path), path};
}

TEST(ModelFacts, AreTheFilesOwn) {
  const TempDir folder;
  const Opened opened = Open(folder, "tiny.gguf");
  const testing::ByteTokenizer tokenizer;
  const auto format = *JinjaChatFormat::Make(kTemplate, tokenizer);
  const ModelFacts facts = FactsOf(opened.model, opened.path, *format, tokenizer);
  EXPECT_EQ(facts.family, "llama");
  EXPECT_EQ(facts.format, "gguf");
  EXPECT_EQ(facts.quantisation, "F32");
  EXPECT_EQ(facts.license, "apache-2.0");
  EXPECT_EQ(facts.chat_template, kTemplate);
  EXPECT_EQ(facts.file_bytes, static_cast<int64_t>(opened.model.file->file_bytes()));
  EXPECT_GT(facts.num_parameters, 1000);
  EXPECT_GT(facts.modified_s, 1'700'000'000);
  EXPECT_THAT(
      facts.shape,
      AllOf(Contains(Pair("embedding_length", 32)),
            Contains(Pair("block_count", static_cast<int64_t>(opened.model.spec.layers.size())))));
}

TEST(ModelFacts, SayWhatTheFormatCanDo) {
  const TempDir folder;
  const Opened opened = Open(folder, "tiny.gguf");
  const testing::ByteTokenizer tokenizer;
  const auto plain = *JinjaChatFormat::Make(kTemplate, tokenizer);
  const ModelFacts none = FactsOf(opened.model, opened.path, *plain, tokenizer);
  EXPECT_TRUE(none.can_call_tools) << "in the generic form";
  const auto calling = *JinjaChatFormat::Make(
      "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call></tool_call>", tokenizer);
  EXPECT_TRUE(FactsOf(opened.model, opened.path, *calling, tokenizer).can_call_tools);
  const auto harmony = *MakeHarmonyFormat(tokenizer);
  const ModelFacts both = FactsOf(opened.model, opened.path, *harmony, tokenizer);
  EXPECT_TRUE(both.can_call_tools);
  EXPECT_TRUE(both.can_think);
}

TEST(ModelFacts, TellFilesApart) {
  const TempDir folder;
  const testing::ByteTokenizer tokenizer;
  const auto format = *JinjaChatFormat::Make(kTemplate, tokenizer);
  const auto digest = [&](const std::string& name) {
    const Opened opened = Open(folder, name);
    return FactsOf(opened.model, opened.path, *format, tokenizer).digest;
  };
  const std::string one = digest("a.gguf"), other = digest("b.gguf");
  EXPECT_EQ(one.size(), 64u);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace hearth
