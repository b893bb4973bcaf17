// SPDX-License-Identifier: Apache-2.0
#include "app/open_backend.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(MemoryPlan, IsRefusedWithItsNumbersWhenItDoesNotFit) {
  constexpr int64_t kGib = int64_t{1} << 30;
  const CpuMemoryPlan plan{.weight_bytes = 12 * kGib, .kv_bytes = kGib, .step_bytes = kGib / 2};
  const auto total = static_cast<uint64_t>(plan.total());
  EXPECT_EQ(total, static_cast<uint64_t>(13 * kGib + kGib / 2));
  EXPECT_TRUE(CheckFits(plan, total).ok());
  const Status refused = CheckFits(plan, total - 1);
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_EQ(CheckFits(plan, static_cast<uint64_t>(8 * kGib)).message(),
            "does not fit: needs 13.50 GiB = 12.00 weights + 1.00 KV + 0.50 activations; 8.00 GiB "
            "usable");
}

}  // namespace
}  // namespace hearth
