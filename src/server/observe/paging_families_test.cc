// SPDX-License-Identifier: Apache-2.0
#include "server/observe/paging_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/observe/metrics.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PagingFamilies, SayWhereExpertsCameFrom) {
  ServerMetrics metrics(MetricFacts{});
  EXPECT_THAT(metrics.Text({}, ServerMetrics::Names::kOurs), Not(HasSubstr("hearth_expert")));
  EXPECT_TRUE(PagingAsJson(metrics.paging()).is_null());
  metrics.WatchPaging([] {
    PagingState state;
    state.frames = 3;
    state.needed = 10;
    state.hits = 6;
    state.ahead_hits = 1;
    state.bytes_read = 4000;
    state.read_s = 2;
    return state;
  });
  const std::string text = metrics.Text({}, ServerMetrics::Names::kOurs);
  for (const char* line : {"hearth_experts_needed_total{from=\"memory\"} 6\n",
                           "hearth_experts_needed_total{from=\"ahead\"} 1\n",
                           "hearth_experts_needed_total{from=\"disk\"} 3\n",
                           "hearth_expert_read_bytes_total 4000\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const Json json = PagingAsJson(metrics.paging());
  EXPECT_EQ(json.Find("hit_share")->number(), 0.6);
  EXPECT_EQ(json.Find("read_bytes_per_s")->number(), 2000);
}

}  // namespace
}  // namespace hearth
