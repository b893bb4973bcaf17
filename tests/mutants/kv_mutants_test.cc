// SPDX-License-Identifier: Apache-2.0
// Every seeded bug of the KV room must be noticed by the room's own checks, and without one they
// must find nothing.
#include <gtest/gtest.h>

#include "testing/kv_driver.h"
#include "testing/kv_scenarios.h"
#include "testing/mutants.h"
namespace hearth {
namespace {

using testing::KvDriver;
using testing::KvDriverOptions;
using testing::KvScenario;
using testing::MutantFate;
using testing::SmallLayout;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in src/kv.
constexpr const char* kBugs[] = {
    "none",
    "a reused block is not counted as held",
    "quotas are not looked at",
    "a key is believed without comparing tokens",
    "a key is believed without comparing what came before",
    "a prefix is reused without the last window's blocks",
    "the window is taken for one block shorter",
    "tokens that are not computed yet are published",
    "chains may lose a block in their middle",
    "window blocks are let go one block too early",
    "a refused reservation has taken full blocks",
    "a trimmed sequence writes into a published block",
    "released sequences keep their window blocks",
    "the window block of an evicted node stays behind",
    "a newcomer replaces the older block under the same key",
    "checkpoints are like any other place",
    "ancestors do not learn that a descendant is in use",
    "a block's age counts from its first use",
    "keys do not depend on what came before",
    "of the window before a multiple of 512 one block too few is kept",
};

std::string RandomChecks() {
  std::string wrong;
  const auto run = [&](KvDriverOptions options, int num_seeds) {
    for (int seed = 1; seed <= num_seeds && wrong.empty(); ++seed) {
      options.seed = seed;
      wrong = KvDriver(options).Run();
    }
  };
  run({.layout = SmallLayout(20, 20, 24)}, 30);
  run({.layout = SmallLayout(30, 12, 40)}, 30);
  run({.layout = SmallLayout(30, 30, 24), .policy = {.key_bits = 4}}, 30);
  run({.layout = SmallLayout(2000, 2000, 40), .is_ample = true}, 10);
  return wrong;
}

std::string AllChecks() {
  for (const KvScenario& scenario : testing::kKvScenarios) {
    if (std::string wrong = scenario.run(); !wrong.empty()) {
      return std::string(scenario.name) + ": " + wrong;
    }
  }
  return RandomChecks();
}

TEST(KvMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(KvMutants, EachIsNoticed) {
  int died = 0;
  for (int number = 1; number < static_cast<int>(std::size(kBugs)); ++number) {
    const MutantFate fate = testing::RunMutant(number, AllChecks);
    EXPECT_NE(fate, MutantFate::kUnnoticed) << "mutant " << number << ": " << kBugs[number];
    died += fate == MutantFate::kDied;
  }
  std::printf("%zu mutants, %d of them stopped by HEARTH_CHECK or a signal\n", std::size(kBugs) - 1,
              died);
}

}  // namespace
}  // namespace hearth
