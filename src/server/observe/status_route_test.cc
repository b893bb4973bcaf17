// SPDX-License-Identifier: Apache-2.0
#include "server/observe/status_route.h"

#include <gtest/gtest.h>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

const MetricFacts kFacts{"1.2.3", "avx2", "exact", "tiny", 4096};

const Json& At(const Json& json, std::initializer_list<const char*> path) {
  static const Json nothing;
  const Json* at = &json;
  for (const char* name : path) {
    const Json* next = at->Find(name);
    if (next == nullptr) {
      ADD_FAILURE() << name << " is not there";
      return nothing;
    }
    at = next;
  }
  return *at;
}
double Number(const Json& json, std::initializer_list<const char*> path) {
  return At(json, path).number().value_or(-1);
}

TEST(Status, TellsWhatRunsAndWaits) {
  EngineOptions options;
  options.scheduler.max_sequences = 2;
  options.admission.max_requests = 77;
  testing::EngineRig rig({}, options);
  const testing::Client first = rig.Submit(40, 10, 1);
  const testing::Client second = rig.Submit(33, 10, 2);
  const testing::Client third = rig.Submit(20, 10, 3);
  for (int i = 0; i < 6; ++i) rig.core.Step();
  const EngineSnapshot snapshot = rig.core.TakeSnapshot();
  ServerMetrics metrics(kFacts);
  metrics.AddListener("api", [] { return HttpCounts{5, 9, 1, 30, 2}; });
  const std::unordered_map<SeqId, SequenceName> names{{first.admission.id, {"abc", "ada", "chat"}}};
  const Json json = StatusAsJson(snapshot, metrics, names, snapshot.at_us + 2000);
  EXPECT_EQ(*At(json, {"hearth"}).string(), "1.2.3");
  EXPECT_EQ(*At(json, {"model"}).string(), "tiny");
  EXPECT_EQ(*At(json, {"state"}).string(), "ready");
  EXPECT_EQ(Number(json, {"snapshot_age_ms"}), 2);
  EXPECT_GT(Number(json, {"resident_bytes"}), 1 << 20);
  EXPECT_EQ(Number(json, {"requests", "running"}), 2);
  EXPECT_EQ(Number(json, {"requests", "max_running"}), 2);
  EXPECT_EQ(Number(json, {"requests", "waiting"}), 1);
  EXPECT_EQ(Number(json, {"requests", "max_waiting"}), 77);
  EXPECT_EQ(Number(json, {"requests", "waiting_tokens"}), 20);
  EXPECT_EQ(Number(json, {"requests", "admitted"}), 3);
  EXPECT_EQ(Number(json, {"steps", "count"}), 6);
  EXPECT_GE(Number(json, {"steps", "mean_ms"}), 1) << "1 ms and 10 us a token";
  EXPECT_GE(Number(json, {"steps", "mean_tokens"}), 2);
  EXPECT_EQ(Number(json, {"tokens", "prefill"}) + Number(json, {"tokens", "decode"}),
            snapshot.totals.prefill_tokens + snapshot.totals.decode_tokens);
  const JsonArray& kv = *At(json, {"kv"}).array();
  ASSERT_EQ(kv.size(), 2u);
  EXPECT_EQ(Number(kv[0], {"total"}), 64);
  EXPECT_GT(Number(kv[0], {"held"}), 0);
  EXPECT_EQ(Number(At(json, {"listeners"}).array()->front(), {"connections"}), 5);
  const JsonArray& rows = *At(json, {"sequences"}).array();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(*At(rows[0], {"request_id"}).string(), "abc");
  EXPECT_EQ(*At(rows[0], {"key"}).string(), "ada");
  EXPECT_EQ(*At(rows[0], {"state"}).string(), "decode");
  EXPECT_EQ(*At(rows[0], {"priority"}).string(), "normal");
  EXPECT_EQ(Number(rows[0], {"prompt_tokens"}), 40);
  EXPECT_EQ(Number(rows[0], {"generated_tokens"}), static_cast<double>(first.heard->tokens.size()));
  // A token every step of a bit more than a millisecond.
  EXPECT_GT(Number(rows[0], {"tokens_per_s"}), 800);
  EXPECT_LT(Number(rows[0], {"tokens_per_s"}), 1000);
  EXPECT_EQ(*At(rows[1], {"key"}).string(), "");
  EXPECT_EQ(*At(rows[2], {"state"}).string(), "waiting");
  EXPECT_EQ(Number(rows[2], {"generated_tokens"}), 0);
  rig.Finish();
}

TEST(Status, SaysStalledBeforeDraining) {
  testing::EngineRig rig;
  ServerMetrics metrics(kFacts);
  EngineSnapshot snapshot = rig.core.TakeSnapshot();
  snapshot.is_draining = true;
  EXPECT_EQ(*At(StatusAsJson(snapshot, metrics, {}, 0), {"state"}).string(), "draining");
  snapshot.is_stalled = true;
  EXPECT_EQ(*At(StatusAsJson(snapshot, metrics, {}, 0), {"state"}).string(), "stalled");
}

TEST(Status, CountsEndsAndTellsTheNext) {
  class Heard : public TurnObserver {
   public:
    void OnEnd(const TurnOutcome&) override { ++count; }
    int count = 0;
  } heard;
  ServerMetrics metrics(kFacts);
  const auto counter = metrics.CountEnds(&heard);
  TurnOutcome outcome;
  counter->OnEnd(outcome);
  outcome.status = 429;
  outcome.error_code = "overloaded";
  counter->OnEnd(outcome);
  counter->OnEnd(outcome);
  metrics.CountEnds(nullptr)->OnEnd(outcome);
  EXPECT_EQ(heard.count, 3);
  testing::EngineRig rig;
  const EngineSnapshot snapshot = rig.core.TakeSnapshot();
  const Json json = StatusAsJson(snapshot, metrics, {}, 0);
  const JsonArray& ends = *At(json, {"turns"}).array();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(*At(ends[0], {"code"}).string(), "overloaded");
  EXPECT_EQ(Number(ends[0], {"count"}), 3);
  EXPECT_NE(metrics.Text(snapshot, ServerMetrics::Names::kOurs)
                .find("hearth_turns_total{status=\"429\",code=\"overloaded\"} 3"),
            std::string::npos);
  // Codes are bounded, whoever makes them up.
  for (int i = 0; i < 1000; ++i) {
    outcome.error_code = std::to_string(i);
    counter->OnEnd(outcome);
  }
  EXPECT_LE(metrics.ends().size(), 65u);
}

}  // namespace
}  // namespace hearth
