// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in how clients share the loading of models must be noticed by the simulation.
#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "testing/load_household.h"
#include "testing/mutants.h"
namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/loads.
constexpr int kFirst = 260;
constexpr const char* kBugs[] = {
    "nobody is charged for anything",
    "a model that others use is thrown out",
    "what anybody owes counts for ever in line",
    "in line who came first goes first, whatever it owes",
    "a client's own use keeps its models from it",
    "time forgives nothing",
    "who owes more takes the room that another one waits for",
    "who makes a model leave does not pay for its way back",
};

std::string AllChecks() {
  for (const std::string& wrong :
       {testing::StormOfTwo(0, false), testing::StormOfTwo(1, true), testing::StormOfMany(),
        testing::Alone(), testing::BesideStrangers(), testing::LargeBesideSmall()}) {
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST(LoadsMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(LoadsMutants, EachIsNoticed) {
  for (int i = 0; i < static_cast<int>(std::size(kBugs)); ++i) {
    EXPECT_EQ(testing::RunMutant(kFirst + i, AllChecks), MutantFate::kReported)
        << "mutant " << kFirst + i << ": " << kBugs[i];
  }
}

}  // namespace
}  // namespace hearth
