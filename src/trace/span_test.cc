// SPDX-License-Identifier: Apache-2.0
#include "trace/span.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace hearth {
namespace {

constexpr const char* kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParent, IsReadAsTheStandardSays) {
  const auto parent = ReadTraceParent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace, (TraceId{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736}));
  EXPECT_EQ(parent->span, 0x00f067aa0ba902b7u);
  EXPECT_TRUE(parent->is_sampled);
  std::string other = kParent;
  other.back() = '2';  // other flags than "sampled"
  ASSERT_TRUE(ReadTraceParent(other));
  EXPECT_FALSE(ReadTraceParent(other)->is_sampled);
}

TEST(TraceParent, OtherThingsBeginANewTrace) {
  const std::string good = kParent;
  std::vector<std::string> wrong = {
      "",
      "00",
      good.substr(0, 54),
      good + "0",
      good + "-0",
      "ff" + good.substr(2),                                      // a version that is forbidden
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",  // no trace
      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",  // no span
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",  // upper case
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g"};
  for (const std::string& each : wrong) EXPECT_FALSE(ReadTraceParent(each)) << each;
  EXPECT_TRUE(ReadTraceParent("01" + good.substr(2) + "-more"));  // a later version may go on
  EXPECT_FALSE(ReadTraceParent("01" + good.substr(2) + "more"));
}

TEST(Otlp, IdsAreHexadecimalAndIntegersStrings) {
  TraceSpan span;
  span.trace = {1, 2};
  span.id = 3;
  span.parent = 0xabc;
  span.name = "chat m";
  span.start_ns = 1'700'000'000'000'000'001;
  span.end_ns = 1'700'000'000'000'000'002;
  span.is_server = span.is_error = true;
  span.message = "overloaded";
  span.attributes = {{"n", 7}, {"b", true}, {"s", "x"}, {"d", 0.5}, {"a", JsonArray{"stop"}}};
  const Json body = *ParseJson(OtlpBody({&span, 1}, {{"service.name", "hearth"}}, "1.2"));
  const Json& all = body.Find("resourceSpans")->array()->front();
  EXPECT_EQ(WriteJson(*all.Find("resource")),
            R"({"attributes":[{"key":"service.name","value":{"stringValue":"hearth"}}]})");
  const Json& scope = all.Find("scopeSpans")->array()->front();
  EXPECT_EQ(*scope.Find("scope")->Find("version")->string(), "1.2");
  const Json& found = scope.Find("spans")->array()->front();
  EXPECT_EQ(*found.Find("traceId")->string(), "00000000000000010000000000000002");
  EXPECT_EQ(*found.Find("spanId")->string(), "0000000000000003");
  EXPECT_EQ(*found.Find("parentSpanId")->string(), "0000000000000abc");
  EXPECT_EQ(found.Find("kind")->integer(), 2);
  EXPECT_EQ(*found.Find("startTimeUnixNano")->string(), "1700000000000000001");
  EXPECT_EQ(WriteJson(*found.Find("status")), R"({"code":2,"message":"overloaded"})");
  EXPECT_EQ(WriteJson(*found.Find("attributes")),
            R"([{"key":"n","value":{"intValue":"7"}},{"key":"b","value":{"boolValue":true}},)"
            R"({"key":"s","value":{"stringValue":"x"}},{"key":"d","value":{"doubleValue":0.5}},)"
            R"({"key":"a","value":{"arrayValue":{"values":[{"stringValue":"stop"}]}}}])");
  span.parent = 0;
  const std::string alone = OtlpBody({&span, 1}, {}, "");
  EXPECT_EQ(alone.find("parentSpanId"), std::string::npos);
}

}  // namespace
}  // namespace hearth
