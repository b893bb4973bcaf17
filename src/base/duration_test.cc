// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Duration, ReadsWhatPeopleWrite) {
  const std::pair<const char*, double> cases[] = {
      {"0", 0},        {"90", 90},       {"30s", 30},  {"5m", 300},
      {"1h30m", 5400}, {"-1", -1},       {"-1m", -60}, {"250ms", 0.25},
      {"1.5h", 5400},  {"1h0m0s", 3600}, {"0.5", 0.5}, {"2m500ms", 120.5}};
  for (const auto& [text, seconds] : cases) {
    Result<double> parsed = ParseDuration(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_DOUBLE_EQ(*parsed, seconds) << text;
  }
}

TEST(Duration, RefusesTheRest) {
  for (const char* text : {"", "-", "m", "5 m", "5x", "inf", "nan", "1e9", "--5", "5m3", "3 ", "+5",
                           "1.2.3", "99999999999999999999h"}) {
    EXPECT_EQ(ParseDuration(text).status().code(), Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace hearth
