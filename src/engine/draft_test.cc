// SPDX-License-Identifier: Apache-2.0
#include "engine/draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hearth {
namespace {

std::vector<Token> DraftOf(const std::vector<Token>& tokens, int count) {
  SuffixIndex index;
  index.Extend(tokens);
  const SuffixMatch match = index.Find(tokens);
  std::vector<Token> draft;
  if (match.length > 0) CopyDraft(tokens, match, count, draft);
  return draft;
}

// The longest earlier match, of equals the latest, by looking everywhere.
SuffixMatch Naive(const std::vector<Token>& tokens) {
  SuffixMatch best;
  const int last = static_cast<int>(tokens.size()) - 1;
  for (int place = last - 1; place >= 1; --place) {
    int length = 0;
    while (length <= place && length < SuffixIndex::kMaxLength &&
           tokens[static_cast<size_t>(place - length)] ==
               tokens[static_cast<size_t>(last - length)]) {
      ++length;
    }
    if (length >= SuffixIndex::kMinLength && length > best.length) best = {length, place + 1};
  }
  return best;
}

TEST(SuffixIndex, ContinuesAsBefore) {
  EXPECT_EQ(DraftOf({1, 2, 3, 4, 5, 1, 2}, 3), (std::vector<Token>{3, 4, 5}));
}

TEST(SuffixIndex, TheLongestMatchWinsAndOfEqualsTheLatest) {
  EXPECT_EQ(DraftOf({9, 1, 2, 7, 8, 1, 2, 5, 9, 1, 2}, 1), (std::vector<Token>{7}));
  EXPECT_EQ(DraftOf({9, 1, 2, 7, 8, 1, 2, 5, 6, 1, 2}, 1), (std::vector<Token>{5}));
}

TEST(SuffixIndex, NothingToGoBy) {
  for (const std::vector<Token>& tokens :
       {std::vector<Token>{}, {1}, {1, 1}, {1, 2, 3}, {1, 2, 3, 1}, {2, 1, 3, 1, 4, 1}}) {
    EXPECT_TRUE(DraftOf(tokens, 4).empty());
  }
}

TEST(SuffixIndex, GoesRoundWhereTheTextDoes) {
  EXPECT_EQ(DraftOf({3, 1, 2, 1, 2}, 5), (std::vector<Token>{1, 2, 1, 2, 1}));
  EXPECT_EQ(DraftOf({7, 7, 7}, 4), (std::vector<Token>{7, 7, 7, 7}));
}

TEST(SuffixIndex, FarBackOnlyWithinItsWindow) {
  for (const int between : {SuffixIndex::kMaxWindow - 10, SuffixIndex::kMaxWindow + 10}) {
    std::vector<Token> tokens = {1, 2, 3};
    for (int i = 0; i < between; ++i) tokens.push_back(100 + i);
    tokens.insert(tokens.end(), {1, 2});
    const bool is_near = between < SuffixIndex::kMaxWindow;
    EXPECT_EQ(DraftOf(tokens, 1), is_near ? std::vector<Token>{3} : std::vector<Token>());
  }
}

// Token by token over texts of all kinds; wherever the pair at the end is not too common the
// answer is the naive one, and elsewhere a true place nonetheless.
TEST(SuffixIndex, AgreesWithLookingEverywhere) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  int num_found = 0, num_exact = 0;
  for (int round = 0; round < 300; ++round) {
    const int vocab = 2 + pick(60);
    std::vector<Token> tokens;
    SuffixIndex index;
    std::map<std::pair<Token, Token>, int> pairs;
    for (int i = 0; i < 400;) {
      // A new piece of text, or one from before.
      int length = 1 + pick(12);
      const bool again = pick(2) == 0 && i > 20;
      const int from = again ? pick(i - 12) : 0;
      for (int j = 0; j < length && i < 400; ++j, ++i) {
        tokens.push_back(again ? tokens[static_cast<size_t>(from + j)] : pick(vocab));
        if (i > 1)
          ++pairs[{tokens[static_cast<size_t>(i - 2)], tokens[static_cast<size_t>(i - 1)]}];
        if (pick(4) != 0) continue;  // what is not asked for must be taken in later all the same
        index.Extend(tokens);
        const SuffixMatch match = index.Find(tokens), naive = Naive(tokens);
        if (i < 1) continue;
        const int common =
            pairs[{tokens[static_cast<size_t>(i - 1)], tokens[static_cast<size_t>(i)]}];
        if (common < 8) {  // others with the same hash count as tries too
          EXPECT_EQ(match.length, naive.length);
          EXPECT_EQ(match.next, naive.next);
          ++num_exact;
        }
        EXPECT_LE(match.length, naive.length);
        EXPECT_EQ(match.length > 0, naive.length > 0);
        for (int back = 0; back < match.length; ++back) {
          EXPECT_EQ(tokens[static_cast<size_t>(match.next - 1 - back)],
                    tokens[static_cast<size_t>(i - back)]);
        }
        num_found += match.length > 0 ? 1 : 0;
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(num_found, 10'000);
  EXPECT_GT(num_exact, 10'000);
}

}  // namespace
}  // namespace hearth
