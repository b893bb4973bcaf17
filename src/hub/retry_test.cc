// SPDX-License-Identifier: Apache-2.0
#include "hub/retry.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

FetchOutcome Status(long status, const char* retry_after = "") {
  FetchOutcome outcome{.trouble = FetchTrouble::kStopped};
  outcome.head.status = status;
  outcome.head.retry_after = retry_after;
  return outcome;
}

TEST(Retry, WaitsDoubleUpToALimit) {
  const RetryPolicy policy{.first_wait = milliseconds(100), .longest_wait = milliseconds(700)};
  EXPECT_EQ(WaitAfter(policy, 1), milliseconds(100));
  EXPECT_EQ(WaitAfter(policy, 3), milliseconds(400));
  EXPECT_EQ(WaitAfter(policy, 4), milliseconds(700));
  EXPECT_EQ(WaitAfter(policy, 1000), milliseconds(700));
}

TEST(Retry, RetryAfterIsSecondsOrADate) {
  EXPECT_EQ(ParseRetryAfter("120", 0), seconds(120));
  EXPECT_EQ(ParseRetryAfter("Thu, 01 Jan 1970 00:02:00 GMT", 100), seconds(20));
  EXPECT_EQ(ParseRetryAfter("Thu, 01 Jan 1970 00:02:00 GMT", 1000), seconds(0));
  EXPECT_EQ(ParseRetryAfter("99999999999999", 0), seconds(366 * 24 * 3600));
  for (const char* text : {"", "soon", "-5", "1e9", "99999999999999999999999"}) {
    EXPECT_FALSE(ParseRetryAfter(text, 0)) << text;
  }
}

TEST(Retry, WhatPasses) {
  for (const long status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(IsTransient(Status(status)));
  for (const long status : {301, 400, 401, 403, 404, 416})
    EXPECT_FALSE(IsTransient(Status(status)));
  EXPECT_TRUE(IsTransient({.trouble = FetchTrouble::kNoHost}));
  EXPECT_TRUE(IsTransient({.trouble = FetchTrouble::kInterrupted}));
  EXPECT_FALSE(IsTransient({.trouble = FetchTrouble::kTls}));
}

TEST(Retry, ServersMayAskForTime) {
  const RetryPolicy policy{.max_retries = 2, .first_wait = milliseconds(10)};
  EXPECT_EQ(*NextWait(policy, Status(503), 1), milliseconds(10));
  EXPECT_EQ(*NextWait(policy, Status(429, "7"), 1), milliseconds(7000));
  EXPECT_NE(NextWait(policy, Status(429, "99999"), 1).status().message().find("99999 s"),
            std::string::npos);
  // By a server's clock that is years ahead, or ours that is behind.
  EXPECT_EQ(*NextWait(policy, Status(429, "Fri, 01 Jan 2100 00:00:00 GMT"), 1), milliseconds(10));
  EXPECT_EQ(NextWait(policy, Status(503), 3).status().message(),
            "gave up after 3 attempts in a row; the last one: HTTP 503");
}

TEST(Retry, MessagesSayWhatToDo) {
  EXPECT_NE(FinalError(Status(401), "a/b").message().find("HF_TOKEN"), std::string::npos);
  EXPECT_EQ(FinalError(Status(404), "a/b").code(), Code::kNotFound);
  EXPECT_EQ(Describe({.trouble = FetchTrouble::kInterrupted, .why = "bad \x1b[2J"}),
            "bad \\x1b[2J");
}

}  // namespace
}  // namespace hearth
