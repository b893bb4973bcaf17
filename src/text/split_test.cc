// SPDX-License-Identifier: Apache-2.0
#include "text/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Pieces(SplitRule rule, std::string_view text) {
  std::vector<std::string> pieces;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const char* const next = ScannerFor(rule)(p, end);
    pieces.emplace_back(p, next);
    p = next;
  }
  return pieces;
}
std::vector<std::string> O200k(std::string_view text) { return Pieces(SplitRule::kO200k, text); }

TEST(SplitO200k, CutsWordsWhereCaseRises) {
  EXPECT_THAT(O200k("HelloWorld"), ElementsAre("Hello", "World"));
  EXPECT_THAT(O200k("HTTPServer"), ElementsAre("HTTPServer"));
  EXPECT_THAT(O200k("ABC"), ElementsAre("ABC"));
  EXPECT_THAT(O200k("aB"), ElementsAre("a", "B"));
  EXPECT_THAT(O200k("\u01c5x"), ElementsAre("\u01c5x"));  // a title-case letter counts as upper
}

TEST(SplitO200k, GivesBackUpperCaseAfterACaselessLetter) {
  // upper* takes all four, lower+ needs one: the last letter without case.
  EXPECT_THAT(O200k("न\u02b0AB"), ElementsAre("न\u02b0", "AB"));
  EXPECT_THAT(O200k("ABनCD"), ElementsAre("ABन", "CD"));
}

TEST(SplitO200k, TakesMarksIntoWords) {
  EXPECT_THAT(O200k("नमस्ते दुनिया"), ElementsAre("नमस्ते", " दुनिया"));
  EXPECT_THAT(O200k("e\u0301a"), ElementsAre("e\u0301a"));
  // A mark is a prefix when lower case can follow, else a word of its own.
  EXPECT_THAT(O200k("\u0301abc"), ElementsAre("\u0301abc"));
  EXPECT_THAT(O200k("\u0301ABC"), ElementsAre("\u0301", "ABC"));
  EXPECT_THAT(O200k("\u0301's"), ElementsAre("\u0301's"));
  EXPECT_THAT(O200k("!\u0301"), ElementsAre("!\u0301"));
  EXPECT_THAT(O200k("!!\u0301a"), ElementsAre("!!\u0301", "a"));
}

TEST(SplitO200k, EndsWordsWithContractions) {
  EXPECT_THAT(O200k("don't DON'T"), ElementsAre("don't", " DON'T"));
  EXPECT_THAT(O200k("we'LLx"), ElementsAre("we'LL", "x"));
  EXPECT_THAT(O200k("x'\u017f"), ElementsAre("x'\u017f"));  // the long s folds to s
  EXPECT_THAT(O200k("x'\u212a"), ElementsAre("x", "'\u212a"));
  EXPECT_THAT(O200k("1's"), ElementsAre("1", "'s"));
  EXPECT_THAT(O200k("a'l"), ElementsAre("a", "'l"));
}

TEST(SplitO200k, GroupsNumbersSymbolsAndSpaces) {
  EXPECT_THAT(O200k("12345"), ElementsAre("123", "45"));
  EXPECT_THAT(O200k("a/b //\n/x"), ElementsAre("a", "/b", " //\n/", "x"));
  EXPECT_THAT(O200k("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(O200k("a  1"), ElementsAre("a", " ", " ", "1"));
  EXPECT_THAT(O200k("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(O200k("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(O200k("\t\tx"), ElementsAre("\t", "\tx"));
  EXPECT_THAT(O200k("\u00a0\u3000x"), ElementsAre("\u00a0", "\u3000x"));
}

TEST(SplitLlama3, LeavesCaseAloneAndContractionsFirst) {
  const auto pieces = [](std::string_view text) { return Pieces(SplitRule::kLlama3, text); };
  EXPECT_THAT(pieces("HelloWorld'S 1234"), ElementsAre("HelloWorld", "'S", " ", "123", "4"));
  EXPECT_THAT(pieces("नमस्ते"), ElementsAre("नमस", "्त", "े"));
  EXPECT_THAT(pieces("!!\n\nx /\n"), ElementsAre("!!\n\n", "x", " /\n"));
}

TEST(SplitQwen2, CutsNumbersIntoDigits) {
  EXPECT_THAT(Pieces(SplitRule::kQwen2, "a 123 \u0662"),
              ElementsAre("a", " ", "1", "2", "3", " ", "\u0662"));
}

TEST(SplitGpt2, TakesOneSpaceAndNoNewlines) {
  const auto pieces = [](std::string_view text) { return Pieces(SplitRule::kGpt2, text); };
  EXPECT_THAT(pieces("it's IT'S 12345 !!\n\nx"),
              ElementsAre("it", "'s", " IT", "'", "S", " 12345", " !!", "\n", "\n", "x"));
  EXPECT_THAT(pieces("\tx"), ElementsAre("\t", "x"));
}

TEST(SplitSmollm, TakesNumbersOutFirst) {
  const auto pieces = [](std::string_view text) { return Pieces(SplitRule::kSmollm, text); };
  // The spaces before a number stand at the end of their part, so they stay together.
  EXPECT_THAT(pieces("a  12 b"), ElementsAre("a", "  ", "1", "2", " b"));
}

TEST(Split, BytesThatAreNotUtf8AreSymbols) {
  EXPECT_THAT(O200k("a\xff\xfe z"), ElementsAre("a", "\xff\xfe", " z"));
  EXPECT_THAT(O200k("\xe4\xb8"), ElementsAre("\xe4\xb8"));
  EXPECT_THAT(O200k("\xffz"), ElementsAre("\xffz"));  // one symbol may begin a word
  EXPECT_THAT(O200k("\xed\xa0\x80"), ElementsAre("\xed\xa0\x80"));
}

TEST(Split, KnowsRulesByTheirExactRegex) {
  constexpr std::string_view kQwen2 =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
      " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  EXPECT_EQ(RuleOfRegex(kQwen2), SplitRule::kQwen2);
  EXPECT_EQ(RuleOfRegex("\\w+"), std::nullopt);
}

}  // namespace
}  // namespace hearth
