// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a load's figures, and the chats it plays, on targets that answer at once.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backend/immediate_backend.h"
#include "load/meter.h"
#include "load/output.h"
#include "load/run.h"
namespace hearth {
namespace {

TEST(LoadStats, PercentilesAreByNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = PercentilesOf(values);
  EXPECT_EQ(p.count, 100);
  EXPECT_DOUBLE_EQ(p.mean, 50.5);
  EXPECT_DOUBLE_EQ(p.p50, 50);
  EXPECT_DOUBLE_EQ(p.p90, 90);
  EXPECT_DOUBLE_EQ(p.p99, 99);
  EXPECT_DOUBLE_EQ(p.most, 100);
  EXPECT_DOUBLE_EQ(PercentilesOf({7}).p99, 7);
  EXPECT_DOUBLE_EQ(PercentilesOf({3, 1}).p50, 1);
  EXPECT_EQ(PercentilesOf({}).count, 0);
}

TEST(LoadStats, GapsLieBetweenTokensOfOneReader) {
  LoadReply a, b;
  a.sent_s = 1;
  a.heard_s = {2, 2.5, 4};
  b.sent_s = 2;
  EXPECT_EQ(FirstTokenSeconds({a, b}), std::vector<double>({1}));
  EXPECT_EQ(TokenGaps({a, b}), std::vector<double>({0.5, 1.5}));
  EXPECT_EQ(TokenGaps({a}, 2.2, 4), std::vector<double>({1.5}));
  EXPECT_EQ(TokenGaps({a}, 0, 3), std::vector<double>({0.5}));
  EXPECT_EQ(GapsBeside({a}, 2.6, 2.7), std::vector<double>({1.5})) << "a pause around it counts";
  EXPECT_EQ(GapsBeside({a}, 2.2, 3), std::vector<double>({0.5, 1.5}));
  EXPECT_EQ(GapsBeside({a}, 4, 9), std::vector<double>()) << "it had ended";
  a.ended_s = 10;
  EXPECT_EQ(GapsBeside({a}, 4, 9), std::vector<double>({5})) << "silent until it was cut off";
}

TEST(LoadMeter, OwnTimeCountsOnlyWhileWorkGoesOn) {
  const std::vector<MeteredStep> steps = {
      {.start_s = 0, .run_s = 1, .tokens = 10, .sequences = 2},
      {.start_s = 1.1, .run_s = 0.9, .tokens = 2, .sequences = 2, .own_s = 0.1},
      {.start_s = 9, .run_s = 5, .tokens = 3, .sequences = 5}};
  const StepSummary summary = SummaryOf(steps);
  EXPECT_EQ(summary.steps, 3);
  EXPECT_EQ(summary.tokens, 15);
  EXPECT_DOUBLE_EQ(summary.mean_sequences, 3);
  EXPECT_NEAR(summary.own_share(), 0.1, 1e-12);
}

class SlowBackend : public ImmediateBackend {
 public:
  std::string_view name() const override { return "slow"; }
  KvLayout kv_layout() const override {
    return {.groups = {{.window = 0, .block_bytes = 64, .num_blocks = 64}}};
  }
  int vocab_size() const override { return 7; }
  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    most_sequences = std::max(most_sequences, plan.slices.size());
    for (const SeqSlice& slice : plan.slices) {
      EXPECT_EQ(slice.num_computed, computed[slice.seq]) << "positions go up one after the other";
      computed[slice.seq] += slice.count;
    }
    std::fill(logits.begin(), logits.end(), 0.0f);
    const LoadClock clock;
    while (clock.now_s() < 2e-3) {
    }
    return Status();
  }
  std::map<SeqId, int> computed;
  size_t most_sequences = 0;
};

TEST(LoadMeter, TheBackendAloneIsAsFastAsItsSteps) {
  SlowBackend backend;
  Result<double> rate = BackendRate(backend, 4, 20, 10);
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(*rate, 200);
  EXPECT_LE(*rate, 2000) << "four tokens each two milliseconds";
  EXPECT_EQ(backend.most_sequences, 4u);
  EXPECT_EQ(backend.computed[static_cast<SeqId>(1)], 31);
  backend.computed.clear();
  EXPECT_EQ(BackendRate(backend, 64, 100, 1).status().code(), Code::kExhausted);
}

// Answers everything before Send returns.
class QuickTarget : public LoadTarget {
 public:
  Status Send(LoadRequest request, std::shared_ptr<LoadStream> stream) override {
    if (num_refuse > 0 && num_refuse-- > 0) return Error(Code::kExhausted, "full");
    prompts.push_back(request.prompt);
    for (int i = 0; i < request.max_tokens; ++i) stream->Hear(3);
    LoadEnd end;
    end.num_cached = static_cast<int>(request.prompt.size()) / 2;
    stream->End(end);
    return Status();
  }
  void Cancel(const LoadStream&) override {}
  int vocab_size() const override { return 50; }
  std::vector<std::vector<Token>> prompts;
  int num_refuse = 0;
};

LoadRecord Play(LoadTarget& target, const LoadOptions& options) {
  const LoadClock clock;
  LoadBell bell;
  return RunLoad(target, options, clock, bell);
}

TEST(LoadRun, WhoeverLeavesIsReplacedAtOnce) {
  QuickTarget target;
  LoadOptions options;
  options.clients = 1;
  options.chats = 10;
  options.turns = 1;
  const LoadRecord record = Play(target, options);
  EXPECT_EQ(record.replies.size(), 10u);
  // The driver looks around once a second when nothing rings: nobody waited for that.
  EXPECT_LT(record.seconds, 5);
}

TEST(LoadRun, EveryChatHasAllItsTurnsAndEachContinuesTheLast) {
  for (const double rate : {0.0, 1000.0}) {
    QuickTarget target;
    LoadOptions options;
    options.clients = 3;
    options.rate = rate;
    options.chats = 7;
    options.turns = 4;
    options.apps = 2;
    const LoadRecord record = Play(target, options);
    EXPECT_EQ(record.replies.size(), 28u);
    EXPECT_EQ(record.num_refused, 0);
    int first = 0, continued = 0;
    std::set<std::vector<Token>> preambles;
    for (const LoadReply& reply : record.replies) first += reply.is_first_turn ? 1 : 0;
    EXPECT_EQ(first, 7);
    for (const std::vector<Token>& prompt : target.prompts) {
      EXPECT_LE(static_cast<int>(prompt.size()), LongestSequence(options));
      preambles.insert({prompt.begin(), prompt.begin() + 16});
      for (const std::vector<Token>& other : target.prompts) {
        continued +=
            other.size() < prompt.size() && std::equal(other.begin(), other.end(), prompt.begin())
                ? 1
                : 0;
      }
    }
    EXPECT_LE(preambles.size(), 2u);
    EXPECT_EQ(continued, 7 * (1 + 2 + 3)) << "later turns start with the earlier ones";
  }
}

TEST(LoadRun, ARefusalEndsItsChat) {
  QuickTarget target;
  target.num_refuse = 1;
  LoadOptions options;
  options.clients = 2;
  options.chats = 4;
  options.turns = 2;
  const LoadRecord record = Play(target, options);
  EXPECT_EQ(record.num_refused, 1);
  EXPECT_EQ(record.refusal, "full");
  EXPECT_EQ(record.replies.size(), 6u);
}

size_t Count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(LoadPage, EveryPictureSaysWhereAndWhenAndWhichWayIsGood) {
  LoadReply reply;
  reply.heard_s = {1, 2, 3};
  LoadReport report;
  report.processor = "a processor";
  report.isa = "avx2";
  report.num_threads = 3;
  report.date = "2026-11-16";
  report.itl_target_s = 0.2;
  report.load.replies = {reply};
  report.load.seconds = 1;
  report.own_rate = 5;
  const std::string chats = LoadPage(report);
  EXPECT_EQ(Count(chats, "<svg"), 4u);
  EXPECT_EQ(Count(chats, ">a processor, avx2, 3 threads, 2026-11-16</text>"), 4u);
  EXPECT_EQ(Count(chats, ">lower is better</text>"), 3u);
  EXPECT_EQ(Count(chats, ">higher is better</text>"), 1u);

  report.url = "http://127.0.0.1:8080";
  report.model = "m";
  report.long_prompt = LongPromptOptions();
  report.beside.streams = {reply};
  report.beside.from_s = 1.5;
  report.beside.to_s = 2.5;
  const std::string beside = LoadPage(report);
  EXPECT_EQ(Count(beside, "<svg"), 3u);
  EXPECT_EQ(Count(beside, ">http://127.0.0.1:8080 m, 2026-11-16</text>"), 3u);
  // The timeline has no better end.
  EXPECT_EQ(Count(beside, ">lower is better</text>"), 2u);
}

}  // namespace
}  // namespace hearth
