// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "testing/data.h"
#include "testing/small_vocab.h"

namespace hearth {
namespace {

std::string ReadAll(const std::string& path) {
  const std::vector<char> bytes = testing::ReadArray<char>(path);
  return std::string(bytes.begin(), bytes.end());
}

std::vector<Token> Encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<Token> tokens;
  tokenizer.Encode(text, tokens);
  return tokens;
}

std::string Decoded(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  std::string text;
  for (const Token token : tokens) text += tokenizer.Bytes(token);
  return text;
}

// The real ranks of gpt-oss, loaded once: `./dev model o200k` puts the file there.
const std::string& O200kPath() {
  static const std::string path = testing::WorkPath("o200k_base.tiktoken");
  return path;
}
const Tokenizer& O200k() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    auto loaded = LoadTiktoken(ReadAll(O200kPath()));
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return *std::move(loaded);
  }();
  return *tokenizer;
}

TEST(O200k, AgreesWithTheGoldenFile) {
  HEARTH_SKIP_WITHOUT(O200kPath());
  const std::string golden = testing::DataPath("golden/o200k_golden.json");
  HEARTH_SKIP_WITHOUT(golden);
  auto cases = ParseJson(ReadAll(golden));
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->array()->size(), 20u);
  for (const Json& one : *cases->array()) {
    std::vector<Token> expected;
    for (const Json& id : *one.Find("ids")->array()) {
      expected.push_back(static_cast<Token>(*id.integer()));
    }
    const std::string& text = *one.Find("text")->string();
    EXPECT_EQ(Encoded(O200k(), text), expected) << text;
  }
}

TEST(O200k, KnowsTheSpecialTokensByName) {
  HEARTH_SKIP_WITHOUT(O200kPath());
  const Tokenizer& tokenizer = O200k();
  EXPECT_EQ(tokenizer.vocab_size(), 201088);
  const std::pair<const char*, Token> expected[] = {
      {"<|startoftext|>", 199998},     {"<|endoftext|>", 199999},
      {"<|reserved_200000|>", 200000}, {"<|reserved_200001|>", 200001},
      {"<|return|>", 200002},          {"<|constrain|>", 200003},
      {"<|reserved_200004|>", 200004}, {"<|channel|>", 200005},
      {"<|start|>", 200006},           {"<|end|>", 200007},
      {"<|message|>", 200008},         {"<|reserved_200009|>", 200009},
      {"<|reserved_200011|>", 200011}, {"<|call|>", 200012},
      {"<|reserved_200013|>", 200013}, {"<|endofprompt|>", 200018},
      {"<|reserved_200018|>", 200018}, {"<|reserved_201087|>", 201087}};
  for (const auto& [name, token] : expected) {
    EXPECT_EQ(tokenizer.Special(name), token) << name;
    EXPECT_TRUE(tokenizer.IsSpecial(token)) << name;
  }
  EXPECT_EQ(tokenizer.Bytes(200006), "<|start|>");
  EXPECT_EQ(tokenizer.Special("<|reserved_201088|>"), std::nullopt);
  EXPECT_EQ(tokenizer.Special("start"), std::nullopt);
  EXPECT_FALSE(tokenizer.IsSpecial(199997));
  EXPECT_FALSE(tokenizer.IsSpecial(-1));
  EXPECT_FALSE(tokenizer.IsSpecial(201088));
  EXPECT_EQ(tokenizer.specials().size(), 1091u);
}

TEST(O200k, SpelledSpecialTokensStayText) {
  HEARTH_SKIP_WITHOUT(O200kPath());
  std::string all;
  for (const SpecialName& special : O200k().specials()) all += special.name + "x" + special.name;
  const std::vector<Token> tokens = Encoded(O200k(), all);
  for (const Token token : tokens) ASSERT_FALSE(O200k().IsSpecial(token));
  EXPECT_EQ(Decoded(O200k(), tokens), all);
}

TEST(O200k, EveryByteStringComesBack) {
  HEARTH_SKIP_WITHOUT(O200kPath());
  uint32_t seed = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < round % 200; ++i) {
      seed = seed * 1664525u + 1013904223u;
      bytes += static_cast<char>(seed >> 24);
    }
    ASSERT_EQ(Decoded(O200k(), Encoded(O200k(), bytes)), bytes);
  }
}

// The promise that matters most, for every kind of vocabulary: some have ordinary tokens that spell
// most of a special one.
TEST(Tokenizer, TextNeverBecomesASpecialToken) {
  for (Vocab& vocab : testing::SmallVocabs()) {
    const std::string rule = NameOf(vocab.split);
    const bool adds_space = vocab.space_prefix != SpacePrefix::kNone;
    auto tokenizer = MakeTokenizer(std::move(vocab));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    std::string all;
    for (const SpecialName& special : (*tokenizer)->specials()) {
      for (const std::string& text :
           {special.name, "x" + special.name, special.name + special.name, " " + special.name}) {
        const std::vector<Token> tokens = Encoded(**tokenizer, text);
        for (const Token token : tokens) {
          EXPECT_FALSE((*tokenizer)->IsSpecial(token)) << rule << " " << text;
        }
        EXPECT_EQ(Decoded(**tokenizer, tokens), (adds_space ? " " : "") + text) << rule;
      }
      EXPECT_EQ((*tokenizer)->Special(special.name), special.token);
      EXPECT_TRUE((*tokenizer)->IsSpecial(special.token));
    }
    EXPECT_GE((*tokenizer)->specials().size(), std::size(testing::kSmallVocabSpecials));
  }
}

TEST(Tokenizer, MergesByRankNotByNumber) {
  Vocab vocab = testing::SmallByteVocab(VocabKind::kMergedBpe, SplitRule::kGpt2);
  vocab.merges.clear();
  const Token a = 'a', b = 'b', c = 'c';
  const auto add = [&vocab](std::string bytes) {
    vocab.tokens.push_back(std::move(bytes));
    vocab.types.push_back(TokenType::kNormal);
    return static_cast<Token>(vocab.tokens.size() - 1);
  };
  const Token ab = add("xab"), bc = add("xbc");  // named so that no piece is looked up whole
  vocab.merges = {{b, c, bc}, {a, b, ab}};
  vocab.tokens[static_cast<size_t>(ab)] = "ab";
  vocab.tokens[static_cast<size_t>(bc)] = "bc";
  // The word list has "ab" as an earlier token: it is not what merging gives, so it stays unused.
  auto tokenizer = MakeTokenizer(vocab);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(Encoded(**tokenizer, "abc"), (std::vector<Token>{a, bc}));
  EXPECT_EQ(Encoded(**tokenizer, "ab"), (std::vector<Token>{ab}));
}

TEST(Tokenizer, SentencePieceFallsBackToBytes) {
  auto tokenizer = MakeTokenizer(testing::SmallSpmVocab());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto spelled = [&](std::string_view text) {
    std::string joined;
    for (const Token token : Encoded(**tokenizer, text)) {
      joined += std::string((*tokenizer)->Bytes(token)) + "|";
    }
    return joined;
  };
  EXPECT_EQ(spelled("the world"), " the| world|");
  EXPECT_EQ(spelled("hello"), " hello|");
  EXPECT_EQ(spelled(" the"), " | the|");  // the space in front comes on top of the text's own
  EXPECT_EQ(spelled("\u20ac"), " |\xe2|\x82|\xac|");
  EXPECT_EQ(spelled("\xff"), " |\xff|");
  EXPECT_EQ(spelled(""), "");
  std::vector<Token> more;
  (*tokenizer)->EncodeMore("the", more);
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ((*tokenizer)->Bytes(more[0]), "t");
}

TEST(Tokenizer, RepeatedPiecesGiveTheSameTokens) {
  // Long enough for the piece cache; each half alone is not.
  auto tokenizer = MakeTokenizer(testing::SmallByteVocab(VocabKind::kMergedBpe, SplitRule::kGpt2));
  ASSERT_TRUE(tokenizer.ok());
  uint32_t seed = 5;
  std::string text;
  std::vector<Token> expected;
  while (text.size() < 20000) {
    seed = seed * 1664525u + 1013904223u;
    const std::string word = " w" + std::to_string((seed >> 20) % 300) + "xyz";
    text += word;
    (*tokenizer)->Encode(word, expected);
  }
  EXPECT_EQ(Encoded(**tokenizer, text), expected);
}

}  // namespace
}  // namespace hearth
