// SPDX-License-Identifier: Apache-2.0
#include "app/open_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(MemoryPlan, IsRefusedWithItsNumbersWhenItDoesNotFit) {
  constexpr int64_t kGib = int64_t{1} << 30;
  BackendPlan plan;
  plan.weight_bytes = 12 * kGib;
  plan.kv.groups = {{.window = 0, .block_bytes = kGib, .num_blocks = 1}};
  plan.step_bytes = kGib / 4;
  plan.result_bytes = kGib / 4;
  const auto total = static_cast<uint64_t>(plan.total_bytes());
  EXPECT_EQ(total, static_cast<uint64_t>(13 * kGib + kGib / 2));
  EXPECT_TRUE(CheckFits(plan, total).ok());
  const Status refused = CheckFits(plan, total - 1);
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_EQ(CheckFits(plan, static_cast<uint64_t>(8 * kGib)).message(),
            "the model does not fit in memory: needs 13.50 GiB = 12.00 weights + 1.00 KV + 0.25 "
            "activations + 0.25 "
            "logits; 8.00 GiB usable; use a smaller model or context, or free memory");
  plan.options.device = "cpu";
  plan.options.beside_bytes = kGib / 2;
  EXPECT_THAT(CheckFits(plan, static_cast<uint64_t>(8 * kGib)).message(),
              testing::HasSubstr("8.00 GiB usable beside 0.50 for the server itself;"));
  plan.options.device = "cuda:0";
  EXPECT_THAT(CheckFits(plan, static_cast<uint64_t>(8 * kGib)).message(),
              testing::HasSubstr("8.00 GiB usable;"))
      << "the server is in the host's memory";
}

}  // namespace
}  // namespace hearth
