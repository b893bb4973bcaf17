// SPDX-License-Identifier: Apache-2.0
#include "trace/turn_spans.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr int64_t kEndUs = 5'000'000, kEndNs = 1'700'000'000'000'000'000;

TurnOutcome Some() {
  TurnOutcome outcome;
  outcome.dialect = "chat";
  outcome.model = "m";
  outcome.request_id = "r";
  outcome.seconds = 1.0;
  RequestRecord record;
  record.finish = Finish::kStop;
  record.num_prompt = 100;
  record.num_cached = 64;
  record.num_generated = 20;
  record.arrived_us = 4'100'000;  // 100 ms to read
  record.started_us = 4'300'000;  // 200 ms in the queue, 50 of them for a tier
  record.loading_us = 50'000;
  record.first_token_us = 4'500'000;
  record.ended_us = 4'990'000;  // 10 ms to write
  outcome.records = {record};
  return outcome;
}

std::vector<TraceSpan> Spans(const TurnOutcome& outcome) {
  SpanId next = 100;
  return SpansOf(outcome, {kEndUs, kEndNs}, {{7, 8}, 9, true}, [&] { return next++; });
}

double Ms(const TraceSpan& span) { return 1e-6 * static_cast<double>(span.end_ns - span.start_ns); }

const Json* Attribute(const TraceSpan& span, const std::string& name) {
  for (const auto& [key, value] : span.attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

// The parts follow each other from the request's first moment to its last.
void ExpectWhole(const std::vector<TraceSpan>& spans) {
  ASSERT_GT(spans.size(), 1u);
  int64_t at = spans[0].start_ns, sum = 0;
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].start_ns, at) << spans[i].name;
    EXPECT_GT(spans[i].end_ns, spans[i].start_ns) << spans[i].name;
    EXPECT_EQ(spans[i].parent, spans[0].id);
    EXPECT_EQ(spans[i].trace, spans[0].trace);
    at = spans[i].end_ns;
    sum += spans[i].end_ns - spans[i].start_ns;
  }
  EXPECT_EQ(sum, spans[0].end_ns - spans[0].start_ns);
}

TEST(TurnSpans, PartsAddUpToTheWhole) {
  const std::vector<TraceSpan> spans = Spans(Some());
  ExpectWhole(spans);
  const std::pair<const char*, double> parts[] = {{"read", 100},    {"queue", 150},  {"tiers", 50},
                                                  {"prefill", 200}, {"decode", 490}, {"write", 10}};
  ASSERT_EQ(spans.size(), 7u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(spans[i + 1].name, parts[i].first);
    EXPECT_NEAR(Ms(spans[i + 1]), parts[i].second, 1e-3) << parts[i].first;
  }
  EXPECT_NEAR(Ms(spans[0]), 1000, 1e-3);
  EXPECT_EQ(spans[0].end_ns, kEndNs);
  EXPECT_EQ(spans[0].parent, 9u);
}

TEST(TurnSpans, TheWholeHasTheConventionsNames) {
  const std::vector<TraceSpan> spans = Spans(Some());
  const TraceSpan& root = spans[0];
  EXPECT_EQ(root.name, "chat m");
  EXPECT_TRUE(root.is_server);
  EXPECT_FALSE(root.is_error);
  EXPECT_EQ(*Attribute(root, "gen_ai.operation.name")->string(), "chat");
  EXPECT_EQ(*Attribute(root, "gen_ai.request.model")->string(), "m");
  EXPECT_EQ(Attribute(root, "gen_ai.usage.input_tokens")->integer(), 100);
  EXPECT_EQ(Attribute(root, "gen_ai.usage.output_tokens")->integer(), 20);
  EXPECT_EQ(Attribute(root, "gen_ai.usage.cache_read.input_tokens")->integer(), 64);
  EXPECT_EQ(WriteJson(*Attribute(root, "gen_ai.response.finish_reasons")), R"(["stop"])");
}

TEST(TurnSpans, WhatDidNotHappenHasNoSpan) {
  TurnOutcome outcome = Some();
  RequestRecord& record = outcome.records[0];
  record.started_us = record.first_token_us = 0;  // cancelled while it waited
  record.loading_us = 0;
  record.finish = Finish::kCancelled;
  const std::vector<TraceSpan> spans = Spans(outcome);
  ExpectWhole(spans);
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[2].name, "queue");
  EXPECT_NEAR(Ms(spans[2]), 890, 1e-3);
  EXPECT_EQ(spans[3].name, "write");
}

TEST(TurnSpans, ARefusedRequestIsOneSpanWithItsError) {
  TurnOutcome outcome;
  outcome.dialect = "chat";
  outcome.status = 429;
  outcome.error_code = "overloaded";
  outcome.seconds = 0.001;
  const std::vector<TraceSpan> spans = Spans(outcome);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_TRUE(spans[0].is_error);
  EXPECT_EQ(spans[0].name, "chat");
  EXPECT_EQ(*Attribute(spans[0], "error.type")->string(), "overloaded");
}

TEST(TurnSpans, ClocksThatDisagreeMakeNoSpanRunBackwards) {
  TurnOutcome outcome = Some();
  outcome.records[0].arrived_us = 3'000'000;    // before its head
  outcome.records[0].ended_us = kEndUs + 1000;  // after its end
  ExpectWhole(Spans(outcome));
}

TEST(TurnSpans, ChoicesOfOnePromptCountItOnce) {
  TurnOutcome outcome = Some();
  outcome.records.push_back(outcome.records[0]);
  outcome.records[1].ended_us += 5000;
  outcome.choices_per_prompt = 2;
  const std::vector<TraceSpan> spans = Spans(outcome);
  ExpectWhole(spans);
  EXPECT_EQ(Attribute(spans[0], "gen_ai.usage.input_tokens")->integer(), 100);
  EXPECT_EQ(Attribute(spans[0], "gen_ai.usage.output_tokens")->integer(), 40);
  EXPECT_NEAR(Ms(spans.back()), 5, 1e-3);  // the longer one's
}

}  // namespace
}  // namespace hearth
