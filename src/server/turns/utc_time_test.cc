// SPDX-License-Identifier: Apache-2.0
#include "server/turns/utc_time.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(UtcTime, IsRfc3339) {
  using std::chrono::system_clock;
  const auto at = [](int64_t us) {
    return Rfc3339(system_clock::time_point(
        std::chrono::duration_cast<system_clock::duration>(std::chrono::microseconds(us))));
  };
  EXPECT_EQ(at(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(at(1'767'323'045'000'123), "2026-01-02T03:04:05.000123Z");
  EXPECT_EQ(at(-1), "1969-12-31T23:59:59.999999Z");
}

TEST(UtcTime, HasAsManyDigitsAsAsked) {
  const std::chrono::system_clock::time_point time(std::chrono::milliseconds(1'700'000'000'042));
  EXPECT_EQ(Rfc3339(time, 3), "2023-11-14T22:13:20.042Z");
  EXPECT_EQ(Rfc3339(time), "2023-11-14T22:13:20.042000Z");
}

}  // namespace
}  // namespace hearth
