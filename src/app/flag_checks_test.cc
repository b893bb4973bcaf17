// SPDX-License-Identifier: Apache-2.0
#include "app/flag_checks.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(FlagChecks, DatesHaveAMonthAndADay) {
  for (const char* good : {"2026-01-31", "1999-12-01"}) {
    std::string text = good;
    EXPECT_EQ(Date()(text), "") << good;
  }
  for (const char* bad : {"", "tomorrow", "2026-13-01", "2026-00-01", "2026-01-32", "2026-01-00",
                          "2026/01/31", "26-01-31", "2026-1-311", "2026-01-31 "}) {
    std::string text = bad;
    EXPECT_EQ(Date()(text), std::string("expected a date like 2026-01-31, found \"") + bad + "\"");
  }
}

TEST(FlagChecks, SizesBecomeBytes) {
  for (const auto& [given, bytes] :
       {std::pair{"17", "17"}, {"2KiB", "2048"}, {"1 GiB", "1073741824"}}) {
    std::string text = given;
    EXPECT_EQ(Size()(text), "") << given;
    EXPECT_EQ(text, bytes);
  }
  for (const char* bad : {"lots", "GiB", "1QiB", "99999999999999TiB"}) {
    std::string text = bad;
    EXPECT_EQ(Size()(text),
              std::string("expected a size such as 512MiB or 4GiB, found \"") + bad + "\"");
  }
}

}  // namespace
}  // namespace hearth
