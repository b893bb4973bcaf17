// SPDX-License-Identifier: Apache-2.0
#include "server/observe/log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

TurnOutcome Some() {
  TurnOutcome outcome;
  outcome.dialect = "chat";
  outcome.request_id = "abc";
  outcome.key_id = "anna\n{}";
  outcome.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  outcome.records.emplace_back();
  outcome.records[0].finish = Finish::kStop;
  outcome.records[0].num_prompt = 7;
  outcome.records[0].arrived_us = 1'000;
  outcome.records[0].first_token_us = 3'500;
  return outcome;
}

TEST(RequestLog, SaysSizesAndTimes) {
  const Json line = OutcomeAsJson(Some(), 1'700'000'000'123);
  EXPECT_EQ(*line.Find("time")->string(), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(*line.Find("traceparent")->string(), Some().traceparent);
  const Json& choice = line.Find("choices")->array()->front();
  EXPECT_EQ(*choice.Find("finish")->string(), "stop");
  EXPECT_EQ(choice.Find("prompt_tokens")->integer(), 7);
  EXPECT_EQ(choice.Find("first_token_ms")->number(), 2.5);
  EXPECT_EQ(choice.Find("wait_ms")->number(), 0) << "it never started";
}

TEST(RequestLog, WritesALinePerRequest) {
  const testing::TempDir dir;
  {
    auto log = RequestLog::Open(dir.Path("log"));
    ASSERT_TRUE(log.ok()) << log.status().message();
    for (int i = 0; i < 100; ++i) (*log)->OnEnd(Some());
  }
  std::ifstream file(dir.Path("log"));
  int lines = 0;
  for (std::string text; std::getline(file, text); ++lines) {
    Result<Json> line = ParseJson(text);
    ASSERT_TRUE(line.ok()) << text;
    EXPECT_EQ(*line->Find("key")->string(), "anna\n{}");
  }
  EXPECT_EQ(lines, 100);
  EXPECT_FALSE(RequestLog::Open(dir.Path("log/under/a/file")).ok());
}

}  // namespace
}  // namespace hearth
