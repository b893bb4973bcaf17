// SPDX-License-Identifier: Apache-2.0
#include "text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/small_vocab.h"
#include "text/tokenizer.h"
#include "text/vocab_spelling.h"
#include "text/vocab_table.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

std::string MessageOfTiktoken(std::string_view file) {
  return ParseTiktoken(file).status().message();
}

TEST(Tiktoken, ReadsRanksInAnyOrder) {
  auto vocab = ParseTiktoken("Yg== 1\nYWI= 2\nYQ== 0\n");
  ASSERT_TRUE(vocab.ok()) << vocab.status().message();
  EXPECT_EQ(vocab->tokens[0], "a");
  EXPECT_EQ(vocab->tokens[1], "b");
  EXPECT_EQ(vocab->tokens[2], "ab");
  EXPECT_EQ(vocab->tokens[3], "<|startoftext|>");
  EXPECT_EQ(vocab->tokens.size(), 3u + 1090u);
}

TEST(Tiktoken, RefusesWhatIsNotARankFile) {
  EXPECT_THAT(MessageOfTiktoken(""), HasSubstr("missing"));
  EXPECT_THAT(MessageOfTiktoken("YQ=="), HasSubstr("line 1: expected \"base64 rank\""));
  EXPECT_THAT(MessageOfTiktoken("YQ== 0\nYQ= 1\n"), HasSubstr("line 2: "));
  EXPECT_THAT(MessageOfTiktoken("YR== 0\n"), HasSubstr("not base64"));  // unused bits set
  EXPECT_THAT(MessageOfTiktoken("Y!== 0\n"), HasSubstr("not base64"));
  EXPECT_THAT(MessageOfTiktoken(" 0\n"), HasSubstr("not base64"));
  EXPECT_THAT(MessageOfTiktoken("YQ== -1\n"), HasSubstr("not a rank"));
  EXPECT_THAT(MessageOfTiktoken("YQ== 0x\n"), HasSubstr("not a rank"));
  EXPECT_THAT(MessageOfTiktoken("YQ== 99999999999999999999\n"), HasSubstr("not a rank"));
  EXPECT_THAT(MessageOfTiktoken("YQ== 1048575\n"), HasSubstr("not a rank below 3"));
  EXPECT_THAT(MessageOfTiktoken("YQ== 0\nYg== 0\n"), HasSubstr("rank 0 appears twice"));
  EXPECT_THAT(MessageOfTiktoken("YQ== 1\nYg== 2\n"), HasSubstr("missing"));
  EXPECT_THAT(LoadTiktoken("YQ== 0\n").status().message(), HasSubstr("byte 0x00 has no token"));
}

std::string JsonFile(std::string_view parts) { return "{" + std::string(parts) + "}"; }
std::string MessageOfJson(std::string_view parts) {
  auto vocab = ParseTokenizerJson(JsonFile(parts));
  return vocab.ok() ? "" : vocab.status().message();
}
constexpr char kByteLevel[] =
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},)";

TEST(TokenizerJson, ReadsBothWaysToWriteMerges) {
  for (const char* merges : {R"(["a b","ab c"])", R"([["a","b"],["ab","c"]])"}) {
    auto vocab = ParseTokenizerJson(JsonFile(
        std::string(kByteLevel) +
        R"("added_tokens":[{"id":5,"content":"<s>","special":true},{"id":6,"content":"<t>"}],)"
        R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4},"merges":)" +
        merges + "}"));
    ASSERT_TRUE(vocab.ok()) << vocab.status().message();
    ASSERT_EQ(vocab->merges.size(), 2u);
    EXPECT_EQ(vocab->merges[1].left, 3);
    EXPECT_EQ(vocab->merges[1].merged, 4);
    EXPECT_EQ(vocab->types[5], TokenType::kControl);
    EXPECT_EQ(vocab->types[6], TokenType::kUserDefined);
    EXPECT_EQ(vocab->split, SplitRule::kGpt2);
  }
}

TEST(TokenizerJson, RefusesWhatItDoesNotKnowByName) {
  const std::string pre = kByteLevel;
  const std::string model = R"("model":{"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})";
  EXPECT_EQ(MessageOfJson(pre + model), "");
  EXPECT_THAT(MessageOfJson(""), HasSubstr("expected a member \"model\""));
  EXPECT_THAT(MessageOfJson(R"("model":{"type":"Unigram"})"), HasSubstr("Unigram"));
  EXPECT_THAT(MessageOfJson(model), HasSubstr("pre_tokenizer \"null\""));
  EXPECT_THAT(MessageOfJson(R"("pre_tokenizer":{"type":"Whitespace"},)" + model),
              HasSubstr("Whitespace"));
  EXPECT_THAT(MessageOfJson(R"("normalizer":{"type":"Lowercase"},)" + pre + model),
              HasSubstr("Lowercase"));
  EXPECT_THAT(
      MessageOfJson(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split",)"
                    R"("pattern":{"Regex":"x+"},"behavior":"Isolated","invert":false},)"
                    R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)" +
                    model),
      HasSubstr("split pattern"));
}

TEST(TokenizerJson, RefusesNumbersAndMergesThatDoNotFit) {
  const std::string pre = kByteLevel;
  const auto message = [&](const char* vocab, const char* merges) {
    return MessageOfJson(pre + R"("model":{"vocab":)" + vocab + R"(,"merges":)" + merges + "}");
  };
  EXPECT_THAT(message(R"({"a":-1})", "[]"), HasSubstr("expected an id below"));
  EXPECT_THAT(message(R"({"a":4000000000})", "[]"), HasSubstr("expected an id below"));
  EXPECT_THAT(message(R"({"a":0.5})", "[]"), HasSubstr("expected an id below"));
  EXPECT_THAT(message(R"({"a":0,"b":0})", "[]"), HasSubstr("both \"a\" and \"b\""));
  EXPECT_THAT(message(R"({"a":0})", "[]"), HasSubstr("merges is empty"));
  EXPECT_THAT(message(R"({"a":0})", R"(["a b"])"), HasSubstr("needs the token \"b\""));
  EXPECT_THAT(message(R"({"a":0,"b":1})", R"(["a b"])"), HasSubstr("needs the token \"ab\""));
  EXPECT_THAT(message(R"({"a":0})", R"(["a"])"), HasSubstr("merge 0: expected a pair"));
  EXPECT_THAT(message(R"({"a":0})", R"([["a"]])"), HasSubstr("merge 0: expected a pair"));
  EXPECT_THAT(message("[]", "[]"), HasSubstr("expected model.vocab"));
}

TEST(Spelling, BytesAreSpelledAsPrintableCharacters) {
  EXPECT_EQ(BytesOfSpelling("\u0120the\u010a"), " the\n");
  EXPECT_EQ(BytesOfSpelling("\u00c3\u00a9"), "\u00e9");
  EXPECT_EQ(BytesOfSpelling(" "), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u4e2d"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\xff"), std::nullopt);
}

TEST(MakeTokenizer, RefusesBrokenVocabularies) {
  using testing::SmallByteVocab;
  const auto message = [](Vocab vocab) {
    return MakeTokenizer(std::move(vocab)).status().message();
  };
  const Vocab good = SmallByteVocab(VocabKind::kMergedBpe, SplitRule::kGpt2);
  EXPECT_EQ(message(good), "");
  Vocab bad = good;
  bad.types.pop_back();
  EXPECT_THAT(message(bad), HasSubstr("token types"));
  bad = good;
  bad.merges[3].merged = static_cast<Token>(bad.tokens.size());
  EXPECT_THAT(message(bad), HasSubstr("merged token"));
  bad = good;
  bad.merges[3].left = -1;
  EXPECT_THAT(message(bad), HasSubstr("left token is -1"));
  bad = good;
  bad.merges.push_back(bad.merges[0]);
  EXPECT_THAT(message(bad), HasSubstr("appears twice"));
  bad = good;
  bad.bos = 1000000;
  EXPECT_THAT(message(bad), HasSubstr("beginning token is 1000000"));
  bad = good;
  bad.tokens[300].assign(600, 'x');
  EXPECT_THAT(message(bad), HasSubstr("has 600 bytes"));
  bad = SmallByteVocab(VocabKind::kRankedBpe, SplitRule::kO200k);
  bad.tokens[300] = bad.tokens[301];
  EXPECT_THAT(message(bad), HasSubstr("the tokens 300 and 301 are both"));
  EXPECT_THAT(message(Vocab()), HasSubstr("0 tokens"));
}

TEST(MakeTokenizer, RefusesBrokenSentencePieceVocabularies) {
  const auto message = [](Vocab vocab) {
    return MakeTokenizer(std::move(vocab)).status().message();
  };
  const Vocab good = testing::SmallSpmVocab();
  EXPECT_EQ(message(good), "");
  Vocab bad = good;
  bad.scores.pop_back();
  EXPECT_THAT(message(bad), HasSubstr("scores"));
  bad = good;
  bad.scores[260] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(bad), HasSubstr("not finite"));
  for (const char* spelling : {"<0x-1>", "<0xZZ>", "<0x100>", "0x41", "<0x41"}) {
    bad = good;
    bad.tokens[1 + 0x41] = spelling;
    EXPECT_THAT(message(bad), HasSubstr("expected <0xNN>")) << spelling;
  }
  bad = good;
  bad.types[1 + 0x41] = TokenType::kUnused;
  EXPECT_THAT(message(bad), HasSubstr("a token <0x41>"));
}

TEST(VocabTable, FindsTokensOfEveryLength) {
  std::vector<std::string> tokens;
  for (size_t size = 1; size <= 40; ++size) {
    tokens.push_back(std::string(size, '\0'));
    tokens.push_back(std::string(size - 1, 'x') + "y");
  }
  auto table = VocabTable::Make(tokens, std::vector<uint8_t>(tokens.size(), 1));
  ASSERT_TRUE(table.ok()) << table.status().message();
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(table->Find(tokens[i]), static_cast<Token>(i));
    EXPECT_EQ(table->Bytes(static_cast<Token>(i)), tokens[i]);
    EXPECT_EQ(table->Find(tokens[i] + "z"), kNoToken);
  }
  EXPECT_EQ(table->Find(""), kNoToken);
}

}  // namespace
}  // namespace hearth
