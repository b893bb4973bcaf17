// SPDX-License-Identifier: Apache-2.0
#include "engine/merge_snapshots.h"

#include <gtest/gtest.h>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

TEST(MergeSnapshots, CountsAddUpAndGoneEnginesStayCounted) {
  testing::EngineRig first, second;
  for (int i = 0; i < 2; ++i) first.Submit(40, 10, 1);
  first.Finish();
  const testing::Client running = second.Submit(30, 5, 1);
  second.core.Step();
  const EngineSnapshot a = first.core.TakeSnapshot(), b = second.core.TakeSnapshot();
  EngineSnapshot sum;
  AddCounts(sum, a);
  EXPECT_EQ(sum.num_admitted, 2u);
  EXPECT_TRUE(sum.kv.empty()) << "its memory is gone";
  AddSnapshot(sum, b, "b");
  EXPECT_EQ(sum.num_admitted, 3u);
  EXPECT_EQ(sum.totals.num_steps, a.totals.num_steps + b.totals.num_steps);
  EXPECT_EQ(sum.generated_tokens, a.generated_tokens + b.generated_tokens);
  EXPECT_EQ(sum.step_histogram.sum_us, a.step_histogram.sum_us + b.step_histogram.sum_us);
  EXPECT_EQ(sum.load.num_running, 1);
  EXPECT_EQ(sum.rows.size(), 1u);
  ASSERT_EQ(sum.kv.size(), b.kv.size());
  EXPECT_EQ(sum.kv[0].name, "b/" + b.kv[0].name);
  AddSnapshot(sum, a, "a");
  EXPECT_EQ(sum.limits.max_running, a.limits.max_running + b.limits.max_running);
  EXPECT_EQ(sum.kv.size(), a.kv.size() + b.kv.size());
}

TEST(MergeSnapshots, IdsOfSeveralEnginesDiffer) {
  EngineOptions options;
  options.admission.first_id = uint64_t{1} << 40;
  testing::EngineRig first, second({}, options);
  first.Submit(40, 10, 1);
  second.Submit(40, 10, 1);
  first.core.Step();
  second.core.Step();
  EXPECT_EQ(static_cast<uint64_t>(first.core.TakeSnapshot().rows[0].id), 1u);
  EXPECT_EQ(static_cast<uint64_t>(second.core.TakeSnapshot().rows[0].id), uint64_t{1} << 40);
}

}  // namespace
}  // namespace hearth
