// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Random {
 public:
  explicit Random(uint32_t seed) : seed_(seed) {}
  uint32_t Below(uint32_t limit) {
    seed_ = seed_ * 1664525u + 1013904223u;
    return (seed_ >> 8) % limit;
  }

 private:
  uint32_t seed_;
};

// The definition, as slow as it reads: join the leftmost pair of lowest rank until none is left.
std::vector<Token> MergeSlowly(const MergeTable& table, std::vector<Token> tokens) {
  for (;;) {
    size_t best = 0;
    Joined lowest;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const Joined joined = table.Find(tokens[i], tokens[i + 1]);
      if (joined.rank < lowest.rank) {
        lowest = joined;
        best = i;
      }
    }
    if (lowest.rank == UINT32_MAX) return tokens;
    tokens[best] = lowest.token;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<Token> Merged(const MergeTable& table, const std::vector<Token>& symbols) {
  Merger merger(table);
  std::vector<MergedPart> parts;
  merger.Merge(symbols, parts);
  std::vector<Token> tokens;
  uint32_t last = 0;
  for (const MergedPart& part : parts) {
    EXPECT_TRUE(tokens.empty() ? part.begin == 0 : part.begin > last);
    last = part.begin;
    tokens.push_back(part.token);
  }
  return tokens;
}

// Random merges over an alphabet of `num_symbols`, in random order: unlike a trained vocabulary,
// where each merge comes after those it builds on. `spread` shifts the ids off the small ones.
std::vector<Merge> RandomMerges(Random& random, uint32_t num_symbols, uint32_t count,
                                Token spread) {
  std::map<std::string, Token> token_of;
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < num_symbols; ++i) {
    texts.push_back(std::string(1, static_cast<char>('a' + i)));
    token_of[texts.back()] = static_cast<Token>(i);
  }
  std::map<std::pair<Token, Token>, Token> pairs;
  while (pairs.size() < count) {
    const std::string left = texts[random.Below(static_cast<uint32_t>(texts.size()))];
    const std::string right = texts[random.Below(static_cast<uint32_t>(texts.size()))];
    if (left.size() + right.size() > 20) continue;
    const auto [it, is_new] =
        token_of.try_emplace(left + right, static_cast<Token>(texts.size()) + spread);
    if (is_new) texts.push_back(left + right);
    pairs[{token_of[left], token_of[right]}] = it->second;
  }
  std::vector<Merge> merges;
  for (const auto& [pair, merged] : pairs) merges.push_back({pair.first, pair.second, merged});
  for (size_t i = merges.size(); i > 1; --i) {
    std::swap(merges[i - 1], merges[random.Below(static_cast<uint32_t>(i))]);
  }
  return merges;
}

std::vector<Token> RandomSymbols(Random& random, uint32_t num_symbols, size_t size) {
  std::vector<Token> symbols(size);
  for (Token& symbol : symbols) symbol = static_cast<Token>(random.Below(num_symbols));
  return symbols;
}

TEST(Merger, GivesWhatTheDefinitionGives) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const uint32_t num_symbols = 1 + random.Below(4);
    const uint32_t count = 1 + random.Below(num_symbols == 1 ? 10 : 60);
    const Token spread = round % 2 == 0 ? 0 : 5000;
    auto table = MergeTable::FromMerges(RandomMerges(random, num_symbols, count, spread));
    ASSERT_TRUE(table.ok()) << table.status().message();
    // Around the sizes where the method changes.
    constexpr size_t kSizes[] = {0, 1, 2, 15, 16, 17, 40, 255, 256, 257, 511, 512, 513, 1100, 2600};
    const std::vector<Token> symbols =
        RandomSymbols(random, num_symbols, kSizes[random.Below(std::size(kSizes))]);
    ASSERT_EQ(Merged(*table, symbols), MergeSlowly(*table, symbols))
        << "round " << round << ", " << symbols.size() << " symbols";
  }
}

TEST(Merger, GivesWhatTheDefinitionGivesWithEqualRanks) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Merge> merges = RandomMerges(random, 2, 20, 0);
    std::vector<uint32_t> ranks(1000);
    for (uint32_t& rank : ranks) rank = random.Below(4);
    auto table = MergeTable::FromTokenRanks(merges, ranks);
    ASSERT_TRUE(table.ok());
    const std::vector<Token> symbols = RandomSymbols(random, 2, random.Below(2000));
    ASSERT_EQ(Merged(*table, symbols), MergeSlowly(*table, symbols)) << "round " << round;
  }
}

// A chain of distinct symbols whose last pair merges first: which symbols pair up is decided at the
// far end, so a window that ends elsewhere gets the pairs wrong and must notice.
TEST(Merger, SeesThroughChainsThatTheFarEndDecides) {
  for (const Token length : {200, 255, 256, 300, 301, 700, 1501, 4000, 20000}) {
    std::vector<Merge> merges;
    for (Token i = length - 2; i >= 0; --i) merges.push_back({i, i + 1, length + i});
    auto table = MergeTable::FromMerges(merges);
    ASSERT_TRUE(table.ok());
    std::vector<Token> symbols;
    for (Token copy = 0; copy < 3; ++copy) {
      for (Token i = 0; i < length; ++i) symbols.push_back(i);
    }
    std::vector<Token> expected;
    for (Token copy = 0; copy < 3; ++copy) {
      if (length % 2 == 1) expected.push_back(0);
      for (Token i = length % 2; i < length; i += 2) expected.push_back(length + i);
    }
    EXPECT_EQ(Merged(*table, symbols), expected) << length;
  }
}

TEST(Merger, LeavesUnknownSymbolsAlone) {
  auto table = MergeTable::FromMerges(std::vector<Merge>{{0, 1, 300}, {300, 300, 301}});
  ASSERT_TRUE(table.ok());
  EXPECT_THAT(Merged(*table, {0, 1, kNoToken, 0, 1, 0, 1}), ElementsAre(300, kNoToken, 301));
}

TEST(MergeTable, RefusesAPairThatStandsTwice) {
  const auto small = MergeTable::FromMerges(std::vector<Merge>{{0, 1, 2}, {0, 1, 3}});
  EXPECT_THAT(small.status().message(), HasSubstr("tokens 0 and 1 appears twice"));
  const auto large = MergeTable::FromMerges(std::vector<Merge>{{500, 1, 2}, {500, 1, 3}});
  EXPECT_THAT(large.status().message(), HasSubstr("tokens 500 and 1 appears twice"));
}

TEST(MergeTable, FindsNothingForNumbersThatAreNoTokens) {
  auto table = MergeTable::FromMerges(std::vector<Merge>{{0, 1, 2}, {2, 500, 501}});
  ASSERT_TRUE(table.ok());
  for (const Token token : {kNoToken, INT32_MIN, INT32_MAX, 1 << 21, (1 << 21) - 1}) {
    EXPECT_EQ(table->Find(token, 1).rank, UINT32_MAX);
    EXPECT_EQ(table->Find(0, token).rank, UINT32_MAX);
    EXPECT_EQ(table->Find(token, token).rank, UINT32_MAX);
  }
  EXPECT_EQ(table->Find(2, 500).token, 501);
}

}  // namespace
}  // namespace hearth
