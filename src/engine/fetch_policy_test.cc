// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hearth {
namespace {

using Share = FetchPolicy::Share;

bool Pays(const FetchPolicy& policy, int64_t tokens, std::vector<Share> shares, int64_t now_us) {
  return policy.Pays(tokens, shares, now_us);
}

TEST(FetchPolicy, FetchesWhatIsFasterFetched) {
  FetchPolicy policy;
  EXPECT_TRUE(Pays(policy, 100, {{0, 1 << 20}}, 0)) << "nothing was measured yet";
  policy.SetPrefill(1000);                        // 100 tokens are 100 ms
  policy.Observe({0, 1 << 20}, 50'000, true, 0);  // 50 ms a MiB
  EXPECT_TRUE(Pays(policy, 100, {{0, 1 << 20}}, 0));
  EXPECT_FALSE(Pays(policy, 100, {{0, 3 << 20}}, 0));
  policy.SetPrefill(100);
  EXPECT_FALSE(Pays(policy, 100, {{0, 1 << 20}}, 0));
}

TEST(FetchPolicy, EachPartHasItsOwnTimes) {
  FetchPolicy policy;
  policy.SetPrefill(1000);
  policy.Observe({0, 1 << 20}, 1'000, true, 0);    // a disk
  policy.Observe({1, 1 << 20}, 200'000, true, 0);  // a slow line
  EXPECT_TRUE(Pays(policy, 100, {{0, 1 << 20}}, 0));
  EXPECT_FALSE(Pays(policy, 100, {{1, 1 << 20}}, 0));
  EXPECT_FALSE(Pays(policy, 100, {{0, 1 << 20}, {1, 1 << 20}}, 0)) << "the slower one decides";
  EXPECT_TRUE(Pays(policy, 500, {{0, 1 << 20}, {1, 1 << 20}}, 0));
  EXPECT_TRUE(Pays(policy, 100, {{2, 1 << 30}}, 0)) << "of this one nothing is known";
}

TEST(FetchPolicy, ShortOnesAreComputedWhereAskingTakesLong) {
  FetchPolicy policy;
  policy.SetPrefill(100);
  for (const int64_t kib : {100, 1000, 200, 4000, 50}) {  // 20 ms, and 10 us a KiB
    policy.Observe({0, kib << 10}, 20'000 + 10 * kib, true, 0);
  }
  EXPECT_FALSE(Pays(policy, 100, {{0, 100 << 10}}, 0)) << "10 ms, where asking alone takes 20";
  EXPECT_TRUE(Pays(policy, 1000, {{0, 1000 << 10}}, 0)) << "100 ms, where fetching takes 30";
}

// Links and disks that there are, and prompts from a block to 16,000 tokens of gpt-oss-20b: the
// choice costs at most a tenth more than the better one, whatever lengths were measured before.
TEST(FetchPolicy, IsWithinATenthOfTheBetterChoice) {
  struct Link {
    double fixed_us, bytes_per_us;
  };
  constexpr Link kLinks[] = {{50, 8000},  {300, 1500},  {1000, 600},
                             {1200, 117}, {2000, 11.7}, {60'000, 80}};
  constexpr int64_t kTokenBytes = 24 << 10;
  for (const double tokens_per_s : {100.0, 500.0, 2000.0, 20'000.0}) {
    for (const Link& link : kLinks) {
      FetchPolicy policy;
      policy.SetPrefill(1e6 / tokens_per_s);
      const auto fetch_us = [&](int64_t tokens) {
        return link.fixed_us + static_cast<double>(tokens * kTokenBytes) / link.bytes_per_us;
      };
      uint64_t random = 7;
      for (int i = 0; i < 40; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const int64_t tokens = int64_t{16} << (random >> 60) % 10;
        policy.Observe({0, tokens * kTokenBytes}, static_cast<int64_t>(fetch_us(tokens)), true, 0);
      }
      for (int64_t tokens = 16; tokens <= 16'384; tokens = tokens * 5 / 4) {
        const double compute_us = 1e6 / tokens_per_s * static_cast<double>(tokens);
        const bool fetches = Pays(policy, tokens, {{0, tokens * kTokenBytes}}, 0);
        const double chosen_us = fetches ? fetch_us(tokens) : compute_us;
        EXPECT_LE(chosen_us, 1.1 * std::min(fetch_us(tokens), compute_us))
            << tokens << " tokens, " << tokens_per_s << " a second, " << link.bytes_per_us;
      }
    }
  }
}

TEST(FetchPolicy, ATierThatFailsIsLeftAloneAndTriedAgainLater) {
  FetchPolicy policy;
  policy.SetPrefill(1000);
  int64_t now_us = 0;
  policy.Observe({0, 1 << 20}, 20'000, true, now_us);
  int loads = 0;
  while (Pays(policy, 100, {{0, 1 << 20}}, now_us) && loads < 100) {
    policy.Observe({0, 1 << 20}, 20'000, false, now_us += 1000);
    ++loads;
  }
  EXPECT_GT(loads, 0) << "one failure is an accident";
  EXPECT_LT(loads, 10);
  EXPECT_FALSE(Pays(policy, 100, {{0, 1 << 20}}, now_us + 5'000'000));
  EXPECT_TRUE(Pays(policy, 100, {{0, 1 << 20}}, now_us + 20'000'000)) << "what was measured is old";
}

TEST(FetchPolicy, PatienceEndsWhereComputingWouldBeFaster) {
  FetchPolicy policy;
  EXPECT_EQ(policy.Patience(100, 2'000'000), 2'000'000);
  policy.SetPrefill(1000);
  EXPECT_EQ(policy.Patience(100, 2'000'000), 100'000);
  EXPECT_EQ(policy.Patience(100'000, 2'000'000), 2'000'000);
  EXPECT_EQ(policy.Patience(1, 2'000'000), 10'000);
}

}  // namespace
}  // namespace hearth
