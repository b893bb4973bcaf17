// SPDX-License-Identifier: Apache-2.0
#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const MetricFacts kFacts{"1.2.3", "avx2", "exact", "a \"model\"", 4096};

// The value of the series written exactly so.
double ValueOf(const std::string& page, const std::string& series) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size()));
  }
  ADD_FAILURE() << series << " is not there";
  return -1;
}

TEST(ServerMetrics, CountsWhatTheEngineDid) {
  ServerMetrics metrics(kFacts);
  testing::EngineRig rig;
  const auto heard = std::make_shared<testing::Listener>();
  for (int i = 0; i < 3; ++i) {
    rig.core.Submit(rig.MakeRequest(40, 10), metrics.Watch(std::make_shared<testing::Listener>()));
    rig.Finish();
  }
  rig.core.Submit(rig.MakeRequest(40, 10), metrics.Watch(heard));
  rig.Finish();
  EXPECT_EQ(heard->tokens.size(), 10u) << "the meter passes everything on";
  ASSERT_TRUE(heard->record.has_value());
  const std::string page = metrics.Text(rig.core.TakeSnapshot(), ServerMetrics::Names::kBoth);
  EXPECT_EQ(ValueOf(page, "hearth_prompt_tokens_total"), 160);
  EXPECT_EQ(ValueOf(page, "hearth_generated_tokens_total"), 40);
  EXPECT_EQ(ValueOf(page, "hearth_cached_tokens_total"), 96);
  EXPECT_EQ(ValueOf(page, "hearth_time_to_first_token_seconds_count"), 4);
  EXPECT_EQ(ValueOf(page, "hearth_inter_token_seconds_count"), 36);
  EXPECT_EQ(ValueOf(page, "hearth_request_seconds_count"), 4);
  EXPECT_EQ(ValueOf(page, "hearth_request_prompt_tokens_sum"), 160);
  EXPECT_EQ(ValueOf(page, "hearth_requests_finished_total{reason=\"length\"}"), 4);
  EXPECT_EQ(ValueOf(page, "hearth_step_seconds_count"), ValueOf(page, "hearth_steps_total"));
  EXPECT_EQ(ValueOf(page, "hearth_step_seconds_bucket{le=\"+Inf\"}"),
            ValueOf(page, "hearth_steps_total"));
  EXPECT_EQ(ValueOf(page, "hearth_kv_capacity_blocks{group=\"full\"}"), 64);
  EXPECT_EQ(ValueOf(page, "hearth_ready"), 1);
}

TEST(ServerMetrics, CountsRestartsAndLinesThatWereLost) {
  MetricFacts facts = kFacts;
  facts.worker.num_restarts = 4;
  ServerMetrics metrics(facts);
  metrics.WatchLog([] { return uint64_t{7}; });
  testing::EngineRig rig;
  const std::string page = metrics.Text(rig.core.TakeSnapshot(), ServerMetrics::Names::kOurs);
  EXPECT_EQ(ValueOf(page, "hearth_worker_restarts_total"), 4);
  EXPECT_EQ(ValueOf(page, "hearth_log_lines_lost_total"), 7);
}

TEST(ServerMetrics, GivesTheSameNumbersUnderOtherNames) {
  ServerMetrics metrics(kFacts);
  testing::EngineRig rig;
  rig.core.Submit(rig.MakeRequest(40, 10), metrics.Watch(std::make_shared<testing::Listener>()));
  rig.core.Submit(rig.MakeRequest(33, 5), metrics.Watch(std::make_shared<testing::Listener>()));
  rig.core.Step();
  const std::string label = "{model_name=\"a \\\"model\\\"\"}";
  std::string page = metrics.Text(rig.core.TakeSnapshot(), ServerMetrics::Names::kBoth);
  EXPECT_EQ(ValueOf(page, "vllm:num_requests_running" + label),
            ValueOf(page, "hearth_requests_running"));
  EXPECT_GT(ValueOf(page, "hearth_requests_running"), 0);
  EXPECT_EQ(ValueOf(page, "vllm:kv_cache_usage_perc" + label),
            std::max(ValueOf(page, "hearth_kv_used_ratio{group=\"full\"}"),
                     ValueOf(page, "hearth_kv_used_ratio{group=\"window\"}")));
  EXPECT_GT(ValueOf(page, "vllm:kv_cache_usage_perc" + label), 0);
  rig.Finish();
  page = metrics.Text(rig.core.TakeSnapshot(), ServerMetrics::Names::kBoth);
  EXPECT_EQ(ValueOf(page, "vllm:prompt_tokens_total" + label), 73);
  EXPECT_EQ(ValueOf(page, "vllm:generation_tokens_total" + label), 15);
  EXPECT_EQ(ValueOf(page, "vllm:time_to_first_token_seconds_count" + label), 2);
  EXPECT_EQ(ValueOf(page, "vllm:inter_token_latency_seconds_count" + label), 13);
  EXPECT_THAT(page, HasSubstr("vllm:request_success_total{finished_reason=\"length\""));
  EXPECT_THAT(metrics.Text(rig.core.TakeSnapshot(), ServerMetrics::Names::kOurs),
              Not(HasSubstr("vllm:")));
}

TEST(ServerMetrics, AsksListenersUntilTheyGo) {
  ServerMetrics metrics(kFacts);
  metrics.AddListener("api", [] { return HttpCounts{.requests_total = 7, .refusals_total = 2}; });
  const std::string page = metrics.Text({}, ServerMetrics::Names::kOurs);
  EXPECT_EQ(ValueOf(page, "hearth_http_requests_total{listener=\"api\"}"), 7);
  EXPECT_EQ(ValueOf(page, "hearth_http_refusals_total{listener=\"api\"}"), 2);
  metrics.WatchStore([] { return StoreCounts{.responses = 3, .bytes = 30, .failures = 1}; });
  EXPECT_EQ(ValueOf(metrics.Text({}, ServerMetrics::Names::kOurs),
                    "hearth_response_store_failures_total"),
            1);
  metrics.ForgetListeners();
  EXPECT_THAT(metrics.Text({}, ServerMetrics::Names::kOurs), Not(HasSubstr("listener=")));
}

TEST(ServerMetrics, SaysWhetherItIsReady) {
  const ServerMetrics metrics(kFacts);
  EngineSnapshot snapshot;
  snapshot.is_stalled = true;
  snapshot.num_stalls = 2;
  const std::string page = metrics.Text(snapshot, ServerMetrics::Names::kOurs);
  EXPECT_EQ(ValueOf(page, "hearth_ready"), 0);
  EXPECT_EQ(ValueOf(page, "hearth_stalled"), 1);
  EXPECT_EQ(ValueOf(page, "hearth_stalls_total"), 2);
  EXPECT_THAT(page, HasSubstr("hearth_build_info{version=\"1.2.3\",isa=\"avx2\""));
}

}  // namespace
}  // namespace hearth
