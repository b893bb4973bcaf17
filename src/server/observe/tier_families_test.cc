// SPDX-License-Identifier: Apache-2.0
#include "server/observe/tier_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/observe/metrics.h"
#include "server/observe/status_route.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

EngineSnapshot WithTier() {
  EngineSnapshot snapshot;
  TierCounts& counts = snapshot.tier.emplace();
  counts.loading = 1;
  counts.num_loads = 9;
  counts.num_loads_used = 7;
  counts.num_not_worth = 2;
  counts.misses = {{"disk", {0, 5, 0, 0, 1, 0}}, {"shared", {0, 5, 0, 6, 0, 0}}};
  TierStats stats;
  stats.num_hits = 40;
  stats.num_misses = 3;
  stats.num_corrupt = 1;
  stats.num_failed = 2;
  stats.num_stored = 50;
  stats.num_declined = 4;
  stats.bytes_read = 4000;
  stats.bytes_written = 5000;
  stats.bytes_spared = 70;
  stats.read_us = 1'500'000;
  stats.write_us = 250'000;
  stats.used_bytes = 6000;
  stats.capacity_bytes = 9000;
  stats.num_records = 45;
  stats.is_writing = false;
  TierStats shared;
  shared.num_hits = 11;
  snapshot.tier_parts = {{"disk", stats}, {"shared", shared}};
  return snapshot;
}

TEST(TierFamilies, SayWhatTheTierDid) {
  ServerMetrics metrics({"1", "avx2", "exact", "m", 16});
  const std::string page = metrics.Text(WithTier(), ServerMetrics::Names::kOurs);
  for (const char* line : {"hearth_tier_fetches_total{tier=\"disk\",result=\"hit\"} 40\n",
                           "hearth_tier_fetches_total{tier=\"disk\",result=\"miss\"} 3\n",
                           "hearth_tier_stores_total{tier=\"disk\",result=\"stored\"} 50\n",
                           "hearth_tier_stores_total{tier=\"disk\",result=\"declined\"} 4\n",
                           "hearth_tier_errors_total{tier=\"disk\",kind=\"corrupt\"} 1\n",
                           "hearth_tier_errors_total{tier=\"disk\",kind=\"io\"} 2\n",
                           "hearth_tier_bytes_total{tier=\"disk\",direction=\"read\"} 4000\n",
                           "hearth_tier_bytes_total{tier=\"disk\",direction=\"write\"} 5000\n",
                           "hearth_tier_busy_seconds_total{tier=\"disk\",direction=\"read\"} 1.5\n",
                           "hearth_tier_loads_total{result=\"used\"} 7\n",
                           "hearth_tier_loads_total{result=\"nothing\"} 2\n",
                           "hearth_tier_loads_total{result=\"computed\"} 2\n",
                           "hearth_tier_fetches_total{tier=\"shared\",result=\"hit\"} 11\n",
                           "hearth_tier_missed_prompts_total{tier=\"disk\",why=\"absent\"} 5\n",
                           "hearth_tier_missed_prompts_total{tier=\"disk\",why=\"lost\"} 1\n",
                           "hearth_tier_missed_prompts_total{tier=\"shared\",why=\"late\"} 6\n",
                           "hearth_tier_bytes_total{tier=\"disk\",direction=\"rewrite\"} 70\n",
                           "hearth_tier_used_bytes{tier=\"disk\"} 6000\n",
                           "hearth_tier_capacity_bytes{tier=\"disk\"} 9000\n",
                           "hearth_tier_blocks{tier=\"disk\"} 45\n",
                           "hearth_tier_working{tier=\"disk\",direction=\"read\"} 1\n",
                           "hearth_tier_working{tier=\"disk\",direction=\"write\"} 0\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  const Json json = StatusAsJson(WithTier(), metrics, {}, 0);
  const Json* tier = json.Find("tier");
  ASSERT_NE(tier, nullptr);
  EXPECT_EQ(tier->Find("loads_used")->number(), 7);
  const JsonArray& parts = *tier->Find("parts")->array();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(*parts[0].Find("name")->string(), "disk");
  EXPECT_EQ(parts[0].Find("hits")->number(), 40);
  EXPECT_EQ(parts[0].Find("capacity_bytes")->number(), 9000);
  EXPECT_EQ(*parts[1].Find("name")->string(), "shared");
}

TEST(TierFamilies, AreNotThereWithoutATier) {
  ServerMetrics metrics({"1", "avx2", "exact", "m", 16});
  EXPECT_THAT(metrics.Text({}, ServerMetrics::Names::kOurs), Not(HasSubstr("hearth_tier")));
  const Json json = StatusAsJson({}, metrics, {}, 0);
  ASSERT_NE(json.Find("tier"), nullptr);
  EXPECT_TRUE(json.Find("tier")->is_null());
}

}  // namespace
}  // namespace hearth
