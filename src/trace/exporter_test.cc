// SPDX-License-Identifier: Apache-2.0
#include "trace/exporter.h"

#include <gtest/gtest.h>

#include "trace/tracer.h"

namespace hearth {
namespace {

// Nobody listens on port 9 of the loopback: connections are refused at once.
constexpr const char* kNobody = "http://127.0.0.1:9/v1/traces";

std::vector<TraceSpan> Spans(int count) {
  TraceSpan span;
  span.trace = {1, 1};
  span.id = 1;
  span.name = "x";
  return std::vector<TraceSpan>(static_cast<size_t>(count), span);
}

TEST(TraceUrl, GetsItsPath) {
  EXPECT_EQ(*CheckTraceUrl("http://127.0.0.1:4318"), "http://127.0.0.1:4318/v1/traces");
  EXPECT_EQ(*CheckTraceUrl("https://c.example/"), "https://c.example/v1/traces");
  EXPECT_EQ(*CheckTraceUrl("http://c:4318/otlp/v1/traces"), "http://c:4318/otlp/v1/traces");
  for (const char* wrong : {"", "127.0.0.1:4318", "grpc://c:4317", "http://", "http:///v1/traces",
                            "http://:4318", "http://a b", "file:///etc/passwd"}) {
    const Result<std::string> url = CheckTraceUrl(wrong);
    ASSERT_FALSE(url.ok()) << wrong;
    EXPECT_EQ(url.status().code(), Code::kInvalid) << wrong;
  }
}

TEST(TraceExporter, AFullQueueDropsWholeRequests) {
  ExporterOptions options;
  options.url = kNobody;
  options.max_queued = 10;
  options.every_ms = 600'000;
  TraceExporter exporter(std::move(options));
  exporter.Offer(Spans(7));
  exporter.Offer(Spans(7));  // does not fit
  exporter.Offer(Spans(3));
  EXPECT_EQ(exporter.counts().dropped, 7u);
  EXPECT_EQ(exporter.counts().sent, 0u);
}

TEST(TraceExporter, ACollectorThatIsAwayCostsSpansOnly) {
  ExporterOptions options;
  options.url = kNobody;
  options.every_ms = 600'000;
  TraceExporter exporter(std::move(options));
  exporter.Offer(Spans(5));
  ASSERT_TRUE(exporter.WaitUntilEmpty(60'000));
  EXPECT_EQ(exporter.counts().dropped, 5u);
  EXPECT_EQ(exporter.counts().sent, 0u);
}

// Counts what comes after the tracer.
class Counter : public TurnObserver {
 public:
  void OnEnd(const TurnOutcome&) override { ++count; }
  int count = 0;
};

uint64_t TracedOf(double share, const std::string& traceparent, int requests) {
  ExporterOptions options;
  options.url = kNobody;
  options.every_ms = 600'000;
  options.max_queued = 0;  // so that each is counted at once
  TraceExporter exporter(std::move(options));
  Counter next;
  const SteadyClock clock;
  Tracer tracer(exporter, share, clock, &next);
  TurnOutcome outcome;
  outcome.traceparent = traceparent;
  for (int i = 0; i < requests; ++i) tracer.OnEnd(outcome);
  EXPECT_EQ(next.count, requests);
  return exporter.counts().dropped;
}

TEST(Tracer, SamplesItsShareUnlessTheClientDecided) {
  EXPECT_EQ(TracedOf(0, "", 100), 0u);
  EXPECT_EQ(TracedOf(1, "", 100), 100u);
  // Ids are random: 20 standard deviations of leeway.
  EXPECT_NEAR(static_cast<double>(TracedOf(0.25, "", 40'000)), 10'000, 1'800);
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";
  EXPECT_EQ(TracedOf(0, parent + "1", 10), 10u);
  EXPECT_EQ(TracedOf(1, parent + "0", 10), 0u);
}

}  // namespace
}  // namespace hearth
