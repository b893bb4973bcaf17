// SPDX-License-Identifier: Apache-2.0
#include "app/paging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/open_model.h"
#include "testing/data.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

TEST(Paging, TheRateIsWhatTheDiskGivesForAbsentExperts) {
  BackendPlan plan;
  plan.num_experts = 100;
  plan.expert_layers = 10;
  plan.frame_bytes = 1000;
  // Four of each layer's experts, of which three quarters are absent: 30,000 bytes a token.
  EXPECT_DOUBLE_EQ(PagedRate(plan, 4, 25, 3e6), 100);
}

TEST(Paging, CountsAreASentence) {
  PagingCounts counts;
  counts.needed = 200;
  counts.hits = 150;
  counts.ahead_hits = 20;
  counts.bytes_read = 3'000'000'000;
  counts.read_ns = 1'500'000'000;
  EXPECT_THAT(Told(counts), HasSubstr("200 experts needed, 75.0 % of them in memory, 10.0 % read "
                                      "ahead; 3.00 GB read at 2.00 GB/s"));
}

TEST(Paging, WhatFitsIsNotPagedAndWhatDoesNotIsRefused) {
  Result<Model> model = OpenModel(testing::DataPath("golden/tiny-oss-mxfp4.gguf"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  BackendOptions options;
  options.max_step_tokens = 1;
  options.max_rows = 1;
  PagingFlags flags;
  Result<FittedPlan> fits = PlanWithin(*model, options, flags, 0, uint64_t{1} << 30);
  ASSERT_TRUE(fits.ok()) << fits.status().message();
  EXPECT_EQ(fits->backend.options.expert_bytes, 0);
  EXPECT_EQ(fits->kv_bytes, 0);
  flags.expert_bytes = 1 << 20;
  EXPECT_EQ(PlanWithin(*model, options, flags, 0, uint64_t{1} << 30).status().code(),
            Code::kInvalid);
  // Allowed, but this file is not packed.
  flags.is_allowed = true;
  const Status unpacked = PlanWithin(*model, options, flags, 0, uint64_t{1} << 30).status();
  EXPECT_EQ(unpacked.code(), Code::kUnsupported);
  EXPECT_THAT(unpacked.message(), HasSubstr("run `hearth pack`"));
}

}  // namespace
}  // namespace hearth
