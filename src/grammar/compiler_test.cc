// SPDX-License-Identifier: Apache-2.0
#include "grammar/compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "grammar/grammar_mask.h"
#include "testing/byte_tokenizer.h"
#include "testing/random_reply.h"

namespace hearth {
namespace {

const testing::ByteTokenizer& Bytes() {
  static const testing::ByteTokenizer tokenizer;
  return tokenizer;
}
std::shared_ptr<const GrammarVocabulary> ByteVocabulary() {
  static const auto vocabulary = *GrammarVocabulary::Make(Bytes());
  return vocabulary;
}
Token Stop() { return ByteVocabulary()->end(); }

// Whether `text`, byte by byte, is one the grammar allows, from its first token to its end.
bool Matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  auto mask = MakeGrammarMask(grammar, {Stop()});
  std::vector<uint32_t> bits(MaskWords(Bytes().vocab_size()));
  for (const char c : text) {
    const Token token = static_cast<unsigned char>(c);
    EXPECT_TRUE(mask->Fill(bits).ok());
    const bool may = IsAllowed(bits, token);
    EXPECT_EQ(mask->Accept(token), may) << text;
    if (!may) return false;
  }
  EXPECT_TRUE(mask->Fill(bits).ok());
  const bool may_stop = IsAllowed(bits, Stop());
  EXPECT_EQ(mask->Accept(Stop()), may_stop) << text;
  EXPECT_EQ(mask->is_finished(), may_stop) << text;
  return may_stop;
}

TEST(GrammarCompiler, WhatOneOwnerCompiledIsNotFoundByAnother) {
  GrammarCompiler compiler(ByteVocabulary());
  const auto ask = [&](std::string_view owner) {
    EXPECT_TRUE(compiler.SchemaText(R"({"type":"integer"})", owner).ok());
    EXPECT_TRUE(compiler.Regex("a+", owner).ok());
    EXPECT_TRUE(compiler.Lark("start: \"x\"", owner).ok());
    EXPECT_TRUE(compiler.Choice({"a", "b"}, owner).ok());
    return compiler.counts().found;
  };
  EXPECT_EQ(ask("anna"), 0u);
  EXPECT_EQ(ask("bert"), 0u);
  EXPECT_EQ(ask(""), 0u);
  EXPECT_EQ(ask("anna"), 4u);
  // Owner and text together must not be another's.
  EXPECT_TRUE(compiler.Regex("xa+", "").ok());
  EXPECT_TRUE(compiler.Regex("a+", "x").ok());
  EXPECT_EQ(compiler.counts().found, 4u);
}

TEST(GrammarCompiler, SchemasRegexesGrammarsAndChoices) {
  GrammarCompiler compiler(ByteVocabulary());
  auto schema = compiler.SchemaText(R"({"properties":{"a":{"type":"integer"}},"required":["a"]})");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  auto regex = compiler.Regex("[ab]{2}c?");
  ASSERT_TRUE(regex.ok()) << regex.status().message();
  EXPECT_TRUE(Matches(*regex, "abc"));
  EXPECT_TRUE(Matches(*regex, "bb"));
  EXPECT_FALSE(Matches(*regex, "b"));
  EXPECT_FALSE(Matches(*regex, "abcc"));
  auto lark = compiler.Lark("start: \"x\" inner\ninner: \"(\" inner? \")\"");
  ASSERT_TRUE(lark.ok()) << lark.status().message();
  EXPECT_TRUE(Matches(*lark, "x((()))"));
  EXPECT_FALSE(Matches(*lark, "x((())"));
  auto choice = compiler.Choice({"yes", "no", "say \"no\"\n", "yesterday"});
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  for (const char* text : {"yes", "no", "say \"no\"\n", "yesterday"}) {
    EXPECT_TRUE(Matches(*choice, text)) << text;
  }
  EXPECT_FALSE(Matches(*choice, "yester"));
  EXPECT_FALSE(Matches(*choice, "maybe"));
}

TEST(GrammarCompiler, ASchemaHoldsToTheLetter) {
  GrammarCompiler compiler(ByteVocabulary());
  auto grammar = compiler.SchemaText(
      R"({"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":12},
          "b":{"enum":["x",null]}},"required":["a"]})");
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  for (const char* good :
       {R"({"a":3})", R"({"a": 12, "b": null})", "{\n  \"a\": 4,\n  \"b\":\"x\"}"}) {
    EXPECT_TRUE(Matches(*grammar, good)) << good;
  }
  for (const char* bad :
       {R"({"a":2})", R"({"a":13})", R"({"b":"x"})", R"({"a":3,"c":1})", "[]", "",
        R"({"a":3,"b":"y"})", "{\"a\":3}}", R"({"a":"3"})", "{          \"a\":3}"}) {
    EXPECT_FALSE(Matches(*grammar, bad)) << bad;
  }
}

TEST(GrammarCompiler, WhatCannotBeEnforcedIsRefusedWithAReason) {
  GrammarCompiler compiler(ByteVocabulary());
  for (const char* schema :
       {R"({"not":{"type":"string"}})", R"({"uniqueItems":true})", R"({"if":{},"then":{}})",
        R"({"oneOf":[{"type":"number"},{"type":"integer"}]})", "false",
        R"({"type":"integer","minimum":4,"maximum":3})", R"({"pattern":"(?=a)b"})",
        R"({"pattern":"(a)\\1"})", R"({"type":"thing"})", R"({"$ref":"#/$defs/none"})",
        R"({"pattern":"[a"})"}) {
    auto made = compiler.SchemaText(schema);
    ASSERT_FALSE(made.ok()) << schema;
    EXPECT_FALSE(made.status().message().empty()) << schema;
  }
  EXPECT_FALSE(compiler.Regex("foo**(").ok());
  EXPECT_FALSE(compiler.Regex("(?=a)").ok());
  EXPECT_FALSE(compiler.Lark("start: nothing").ok());
  EXPECT_FALSE(compiler.Lark("").ok());
  EXPECT_FALSE(compiler.Lark("start: %json {\"x-guidance\": 3}").ok());
  EXPECT_FALSE(compiler.Choice({}).ok());
  EXPECT_FALSE(compiler.Choice({"a", ""}).ok());
  EXPECT_EQ(compiler.counts().compiled, 0u);
  EXPECT_GE(compiler.counts().refused, 17u);
}

TEST(GrammarCompiler, KeepsWhatWasCompiledWithinItsBounds) {
  GrammarCompiler compiler(ByteVocabulary(), {.kept_grammars = 2});
  ASSERT_TRUE(compiler.Regex("a").ok());
  ASSERT_TRUE(compiler.Regex("b").ok());
  ASSERT_TRUE(compiler.Regex("a").ok());  // now the younger one
  EXPECT_EQ(compiler.counts().found, 1u);
  ASSERT_TRUE(compiler.Regex("c").ok());  // drops b
  ASSERT_TRUE(compiler.Regex("a").ok());
  EXPECT_EQ(compiler.counts().found, 2u);
  ASSERT_TRUE(compiler.Regex("b").ok());
  EXPECT_EQ(compiler.counts().compiled, 4u);
  // A regex and a grammar of the same bytes are two things.
  EXPECT_FALSE(compiler.Lark("a").ok());
}

TEST(GrammarCompiler, AGrammarHasTheMemoryThatItsCompilingTook) {
  GrammarCompiler compiler(ByteVocabulary());
  auto small = compiler.Regex("a"), large = compiler.Regex("([a-z]{1,40} [0-9]{1,40}){1,9}");
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_GT((*small)->bytes(), 1'000u);
  EXPECT_GT((*large)->bytes(), (*small)->bytes());
  EXPECT_GE(compiler.counts().kept_bytes, (*small)->bytes() + (*large)->bytes());
}

TEST(GrammarCompiler, FreshGrammarsReachAPlateauOfBytes) {
  constexpr size_t kMost = size_t{2} << 20;
  GrammarCompiler compiler(ByteVocabulary(), {.kept_bytes = kMost});
  uint64_t most = 0;
  for (int i = 0; i < 120; ++i) {
    ASSERT_TRUE(compiler.Regex("([a-z]{1,30} x" + std::to_string(i) + "){1,9}").ok());
    most = std::max(most, compiler.counts().kept_bytes);
  }
  EXPECT_GT(most, kMost / 2) << "they are kept";
  EXPECT_LE(most, kMost);
  EXPECT_LT(compiler.counts().kept, 120u) << "fewer than there were, or this shows nothing";
}

TEST(GrammarCompiler, FreshGrammarsOfOneClientDoNotCostAnotherIts) {
  GrammarCompiler compiler(ByteVocabulary(), {.kept_grammars = 10});
  ASSERT_TRUE(compiler.Regex("mine", "2/a").ok());
  // Under many names, as with a cache_salt for each.
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(compiler.Regex("x" + std::to_string(i), "1/" + std::to_string(i)).ok());
  }
  EXPECT_EQ(compiler.counts().kept, 10u);
  ASSERT_TRUE(compiler.Regex("mine", "2/a").ok());
  EXPECT_EQ(compiler.counts().found, 1u);
  ASSERT_TRUE(compiler.Regex("x39", "1/39").ok());
  EXPECT_EQ(compiler.counts().found, 2u) << "the youngest of the many";
}

TEST(GrammarCompiler, ThreadsCompileBesideEachOther) {
  GrammarCompiler compiler(ByteVocabulary());
  std::vector<std::thread> threads;
  std::vector<int> made(4);
  for (size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        auto grammar = compiler.Regex("a{" + std::to_string(i % 7 + 1) + "}");
        made[t] +=
            grammar.ok() && Matches(*grammar, std::string(static_cast<size_t>(i % 7 + 1), 'a'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, std::vector<int>(4, 20));
  EXPECT_EQ(compiler.counts().compiled + compiler.counts().found, 80u);
}

TEST(GrammarMask, ACopyGoesItsOwnWay) {
  GrammarCompiler compiler(ByteVocabulary());
  auto grammar = compiler.Regex("(ab|cd)*e");
  ASSERT_TRUE(grammar.ok());
  auto mask = MakeGrammarMask(*grammar, {Stop()});
  ASSERT_TRUE(mask->Accept('a'));
  auto copy = mask->Clone();
  ASSERT_TRUE(copy->Accept('b'));
  ASSERT_TRUE(copy->Accept('e'));
  ASSERT_TRUE(copy->Accept(Stop()));
  EXPECT_TRUE(copy->is_finished());
  EXPECT_FALSE(copy->Accept('a'));
  EXPECT_FALSE(mask->is_finished());
  EXPECT_FALSE(mask->Accept('e'));  // refused, and nothing changed
  EXPECT_FALSE(mask->Accept(Stop()));
  EXPECT_FALSE(mask->Accept(-1));
  EXPECT_FALSE(mask->Accept(1 << 30));
  EXPECT_TRUE(mask->Accept('b'));
}

TEST(GrammarMask, NoiseUnderAMaskIsTheGrammars) {
  GrammarCompiler compiler(ByteVocabulary());
  auto grammar = compiler.SchemaText(
      R"({"$defs":{"t":{"type":"object","properties":{"v":{"type":"boolean"},
          "l":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},"required":["v","l"]}},
          "$ref":"#/$defs/t"})");
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  testing::RandomModel model(Bytes(), {Stop()});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto mask = MakeGrammarMask(*grammar, {Stop()});
    const auto reply = model.Run(*mask, seed, 30, 3000);
    ASSERT_EQ(reply.error, "");
    ASSERT_TRUE(reply.is_finished) << seed;
    std::string text;
    for (const Token token : reply.tokens) {
      if (token != Stop()) text += Bytes().Bytes(token);
    }
    auto json = ParseJson(text, {.max_depth = 3000});
    ASSERT_TRUE(json.ok()) << text;
    EXPECT_NE(json->Find("v")->boolean(), nullptr) << text;
  }
}

}  // namespace
}  // namespace hearth
