// SPDX-License-Identifier: Apache-2.0
#include "app/open_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "app/open_format.h"
#include "app/open_model.h"
#include "app/open_tokenizer.h"
#include "testing/data.h"
#include "testing/talking_model.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::GgufBuilder;
using testing::TempDir;

constexpr int kTokens = testing::kTalkingTokens;

TEST(OpenText, AStartParsesTheMetadataOnce) {
  const TempDir folder;
  const std::string path = folder.Write("model.gguf", testing::TalkingModel()).Path("model.gguf");
  const int64_t before = NumGgufParses();
  Result<Model> model = OpenModelFor(path, "cpu");
  ASSERT_TRUE(model.ok()) << model.status().message();
  // What is not there cannot be read again.
  ASSERT_EQ(std::remove(path.c_str()), 0);
  Result<ModelText> text = OpenModelText(*model, path);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->tokenizer->vocab_size(), kTokens);
  EXPECT_THAT(text->format->stop_tokens(), ::testing::Contains(2));
  EXPECT_EQ(NumGgufParses() - before, 1);
}

TEST(OpenText, ATokenizerAndItsTemplateShareOneParse) {
  const TempDir folder;
  const std::string path = folder.Write("model.gguf", testing::TalkingModel()).Path("model.gguf");
  const int64_t before = NumGgufParses();
  Result<TextSource> source = TextSource::Open(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  Result<std::unique_ptr<Tokenizer>> tokenizer = OpenTokenizer(*source);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_TRUE(OpenChatFormat(*source, "", **tokenizer).ok());
  EXPECT_EQ(NumGgufParses() - before, 1);
}

TEST(OpenText, SaysWhichFileIsMissing) {
  const std::string path = testing::RepoPath("tests/fixtures/families/qwen2/hf");
  Result<Model> model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(OpenModelText(*model, path).status().message(),
            path + ": this directory has no tokenizer.json; pass a tokenizer with --tokenizer");
}

TEST(OpenText, RefusesAVocabularyThatTheModelHasNoRoomFor) {
  const TempDir folder;
  const std::string path = folder.Write("model.gguf", testing::TalkingModel()).Path("model.gguf");
  Result<Model> model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  model->spec.vocab_size = kTokens - 1;
  EXPECT_EQ(OpenModelText(*model, path).status().message(),
            path + ": the tokenizer has 300 tokens, but the model only 299");
}

}  // namespace
}  // namespace hearth
