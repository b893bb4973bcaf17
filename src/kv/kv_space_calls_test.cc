// SPDX-License-Identifier: Apache-2.0
// What the scheduler relies on, case by case: misses explained, trimming, pins, admission's
// numbers.
#include <gtest/gtest.h>

#include "kv/kv_space.h"
#include "testing/kv_scenarios.h"
namespace hearth {
namespace {

using testing::Probe;
using testing::RandomTokens;
using testing::Serve;
using testing::SmallLayout;

KvMatch MatchOnce(KvSpace& space, const std::vector<Token>& tokens, int limit) {
  KvHolding holding;
  const KvMatch match = space.Match(tokens, limit, holding);
  space.Release(holding);
  return match;
}

std::vector<Token> Joined(std::vector<Token> a, const std::vector<Token>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(KvMiss, SaysWhereThePromptLeftTheNearestBranch) {
  KvSpace space(SmallLayout(200, 200, 32), {});
  const auto known = RandomTokens(160, 1);
  Serve(space, known);
  auto edited = known;
  edited[107] += 1;
  const KvMatch match = MatchOnce(space, edited, 159);
  EXPECT_EQ(match.tokens, 96);
  EXPECT_EQ(match.miss.why, KvMiss::Why::kNeverSeen);
  EXPECT_EQ(match.miss.position, 96);
  EXPECT_EQ(match.miss.branch_tokens, 11);  // 96 + 11 is the token that was edited
}

TEST(KvMiss, NoneWhenAllThatCouldBeReusedWas) {
  KvSpace space(SmallLayout(200, 200, 32), {});
  const auto known = RandomTokens(160, 1);
  Serve(space, known);
  EXPECT_EQ(MatchOnce(space, known, 159).miss.why, KvMiss::Why::kNone);
  EXPECT_EQ(MatchOnce(space, known, 159).tokens, 144);
  EXPECT_EQ(MatchOnce(space, known, 15).miss.why, KvMiss::Why::kNone);
  EXPECT_EQ(MatchOnce(space, RandomTokens(50, 2), 49).miss.why, KvMiss::Why::kNeverSeen);
}

TEST(KvMiss, KnowsWhatWasEvicted) {
  KvSpace space(SmallLayout(20, 0, 0), {});
  const auto known = RandomTokens(160, 1);
  Serve(space, known);
  Serve(space, RandomTokens(20 * kDefaultBlockTokens, 2));
  const KvMatch match = MatchOnce(space, known, 159);
  EXPECT_EQ(match.tokens, 0);
  EXPECT_EQ(match.miss.why, KvMiss::Why::kEvicted);
}

TEST(KvMiss, TellsAMissingWindowFromAMissingBlock) {
  KvSpace space(SmallLayout(400, 40, 128), {.window_every = 0});
  const auto known = RandomTokens(1600, 1);
  Serve(space, known);
  Serve(space, RandomTokens(700, 2));
  const auto branch = Joined({known.begin(), known.begin() + 805}, RandomTokens(100, 3));
  const KvMatch match = MatchOnce(space, branch, 900);
  EXPECT_EQ(match.tokens, 0);
  EXPECT_EQ(match.miss.why, KvMiss::Why::kWindowMissing);
  EXPECT_EQ(match.miss.position + match.miss.branch_tokens, 805);
}

TEST(KvSpace, SaltsKeepTenantsApart) {
  KvSpace space(SmallLayout(100, 0, 0), {});
  const auto tokens = RandomTokens(160, 1);
  Serve(space, tokens, {.tenant = 1, .salt = 11});
  EXPECT_EQ(Probe(space, tokens, {.tenant = 2, .salt = 12}), 0);
  EXPECT_EQ(Probe(space, tokens, {.tenant = 2, .salt = 11}), 160);
}

TEST(KvSpace, TrimKeepsAPartlyFilledBlockOfItsOwn) {
  KvSpace space(SmallLayout(20, 20, 64), {});
  const auto tokens = RandomTokens(100, 1);
  KvHolding holding;
  ASSERT_TRUE(space.Reserve(holding, 0, 70));
  space.Commit(holding, tokens, 70);
  ASSERT_TRUE(space.Reserve(holding, 70, 20));  // 20 drafted tokens, of which 3 are accepted
  EXPECT_EQ(space.Trim(holding, 73), 73);
  EXPECT_EQ(holding.tables[0].size(), 5u);
  // Back into what was published: the block is others' to read, so it goes as a whole.
  EXPECT_EQ(space.Trim(holding, 60), 48);
  EXPECT_EQ(holding.tables[0].size(), 3u);
  EXPECT_EQ(holding.keys.size(), 3u);
  space.Release(holding);
  EXPECT_EQ(Probe(space, tokens), 64);
}

TEST(KvSpace, TrimPastTheWindowGivesEverythingBack) {
  KvSpace space(SmallLayout(40, 40, 32), {});
  const auto tokens = RandomTokens(400, 1);
  KvHolding holding;
  for (int done = 0; done < 320; done += 32) {
    ASSERT_TRUE(space.Reserve(holding, done, 32));
    space.Commit(holding, tokens, done + 32);
  }
  EXPECT_EQ(space.Trim(holding, 100), 0);
  EXPECT_TRUE(holding.tables.empty() && holding.keys.empty());
  EXPECT_EQ(space.counts(0).held, 0);
  EXPECT_EQ(space.Match(tokens, 100, holding).tokens, 96);  // nothing was evicted
  space.Release(holding);
}

TEST(KvSpace, WindowBlocksAreLetGoAsTheWindowSlides) {
  KvSpace space(SmallLayout(100, 12, 128), {});
  const auto tokens = RandomTokens(1000, 1);
  KvHolding holding;
  for (int done = 0; done < 1000; ++done) {
    ASSERT_TRUE(space.Reserve(holding, done, 1)) << done;
    space.Commit(holding, tokens, done + 1);
    ASSERT_LE(space.counts(1).held, space.BlocksFor(1, 1000, 1));
  }
  EXPECT_EQ(space.counts(1).held, 9);
  space.Release(holding);
}

TEST(KvSpace, BlocksForKnowsTheWorstAlignment) {
  KvSpace space(SmallLayout(100, 100, 128), {});
  EXPECT_EQ(space.BlocksFor(0, 1000, 64), 63);
  EXPECT_EQ(space.BlocksFor(1, 1000, 1), 9);     // 128 tokens, anywhere
  EXPECT_EQ(space.BlocksFor(1, 1000, 512), 41);  // 639 tokens, anywhere
  EXPECT_EQ(space.BlocksFor(1, 40, 512), 3);
  KvLayout longer = SmallLayout(100, 100, 128);
  longer.block_tokens = 32;
  longer.groups.push_back({.window = 40, .block_bytes = 1, .num_blocks = 100});
  KvSpace three(longer, {});
  EXPECT_EQ(three.BlocksFor(0, 1000, 64), 32);
  EXPECT_EQ(three.BlocksFor(1, 1000, 1), 5);
  EXPECT_EQ(three.BlocksFor(2, 1000, 1), 3);  // 40 tokens, anywhere
}

TEST(KvSpace, CommittedWorkCannotBeReservedAgain) {
  KvSpace space(SmallLayout(10, 0, 0), {});
  const auto tokens = RandomTokens(64, 1);
  KvHolding holding;
  ASSERT_TRUE(space.Reserve(holding, 0, 64));
  space.Commit(holding, tokens, 64);
  EXPECT_DEATH(static_cast<void>(space.Reserve(holding, 40, 8)), "bug");
  space.Release(holding);
}

}  // namespace
}  // namespace hearth
