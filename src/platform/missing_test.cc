// SPDX-License-Identifier: Apache-2.0
#include "platform/missing.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// What was noted stays noted, so every run has words of its own.
TEST(Missing, IsToldOnce) {
  static int run = 0;
  const std::string a = std::to_string(++run) + " a is refused", b = std::to_string(run) + " b";
  TakeMissing();
  NoteMissing(a);
  NoteMissing(b);
  NoteMissing(a);
  EXPECT_EQ(TakeMissing(), (std::vector<std::string>{a, b}));
  NoteMissing(a);
  EXPECT_EQ(TakeMissing(), std::vector<std::string>());
  NoteMissing(a + " again");
  EXPECT_EQ(TakeMissing(), std::vector<std::string>{a + " again"});
}

}  // namespace
}  // namespace hearth
