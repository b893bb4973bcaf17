// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "testing/data.h"

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
  const std::string golden = testing::SharedPath("golden/o200k_golden.json");
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

}  // namespace
}  // namespace hearth
