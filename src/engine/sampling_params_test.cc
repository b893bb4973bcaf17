// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace hearth {
namespace {

TEST(Validate, NamesTheFieldItsValueAndItsRange) {
  EXPECT_TRUE(Validate({}, 100).ok());
  const Status hot = Validate({.temperature = 101}, 100);
  EXPECT_EQ(hot.code(), Code::kInvalid);
  EXPECT_EQ(hot.message(), "temperature: 101 is not between 0 and 100");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Validate({.top_p = nan}, 100).message(), testing::HasSubstr("top_p: nan"));
  EXPECT_THAT(Validate({.top_k = -1}, 100).message(), testing::HasSubstr("top_k: -1"));
  EXPECT_THAT(Validate({.min_p = 1.5f}, 100).message(), testing::HasSubstr("min_p: 1.5"));
}

}  // namespace
}  // namespace hearth
