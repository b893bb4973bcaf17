// SPDX-License-Identifier: Apache-2.0
#include "hub/fetch_text.h"

#include <gtest/gtest.h>

#include "testing/fake_transport.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using testing::FakeTransport;
using testing::Fault;

class FetchTextTest : public ::testing::Test {
 protected:
  FetchTextTest() { transport_.files["u"] = std::string(2500, 'x'); }
  Result<TextAnswer> Fetch(size_t max_bytes = 10000) {
    return FetchText(transport_, {.url = "u"}, "the list", max_bytes, retry_, milliseconds(20));
  }
  void FailFirst(int count, const Fault& fault) {
    transport_.fault = [=](int number, const HttpFetch&) {
      return number < count ? fault : Fault();
    };
  }
  RetryPolicy retry_{
      .max_retries = 5, .first_wait = milliseconds(1), .longest_wait = milliseconds(1)};
  FakeTransport transport_;
};

TEST_F(FetchTextTest, AnAnswer) {
  Result<TextAnswer> answer = Fetch();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->body, transport_.files["u"]);
  EXPECT_EQ(transport_.requests.size(), 1u);
}

TEST_F(FetchTextTest, ABrokenAnswerIsNotJoinedWithTheNext) {
  FailFirst(3, {.drop_after = 1500});
  Result<TextAnswer> answer = Fetch();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->body, transport_.files["u"]);
}

TEST_F(FetchTextTest, OverloadAndStallsPass) {
  FailFirst(2, {.status = 503});
  EXPECT_TRUE(Fetch().ok());
  transport_.requests.clear();
  FailFirst(2, {.stalls = true});
  EXPECT_TRUE(Fetch().ok());
}

TEST_F(FetchTextTest, GivesUpAfterSomeAttempts) {
  FailFirst(100, {.status = 500});
  const Status status = Fetch().status();
  EXPECT_EQ(status.message(),
            "the list: gave up after 6 attempts in a row; the last one: HTTP 500");
  EXPECT_EQ(transport_.requests.size(), 6u);
}

TEST_F(FetchTextTest, WithoutANetworkItGivesUpSooner) {
  FailFirst(100, {.trouble = FetchTrouble::kNoHost});
  EXPECT_EQ(Fetch().status().code(), Code::kIo);
  EXPECT_EQ(transport_.requests.size(), 3u);
}

TEST_F(FetchTextTest, WhatIsTooLongIsNotRead) {
  const Status status = Fetch(2499).status();
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_EQ(transport_.requests.size(), 1u);
  EXPECT_TRUE(Fetch(2500).ok());
}

TEST_F(FetchTextTest, WhatWillNotPassIsToldAtOnce) {
  transport_.files.clear();
  EXPECT_EQ(Fetch().status().code(), Code::kNotFound);
  EXPECT_EQ(transport_.requests.size(), 1u);
}

}  // namespace
}  // namespace hearth
