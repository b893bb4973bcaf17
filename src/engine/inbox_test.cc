// SPDX-License-Identifier: Apache-2.0
#include "engine/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event_buffer.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InboxTest : public ::testing::Test {
 protected:
  static Request Of(int prompt, int max_tokens, uint32_t tenant = 0) {
    Request request;
    request.prompt.assign(static_cast<size_t>(prompt), 3);
    request.max_tokens = max_tokens;
    request.domain.tenant = tenant;
    return request;
  }
  Admission Offer(Request request) {
    return inbox_.Offer(std::move(request), std::make_shared<EventBuffer>(), 0);
  }
  AdmissionLimits limits_{10, 1000, 60, 0.8};
  Inbox inbox_{limits_, 500, 400, 50};
};

TEST_F(InboxTest, WhatCanNeverFitIsInvalidWithTheNumbers) {
  Admission admission = Offer(Of(450, 51));
  EXPECT_EQ(admission.status.code(), Code::kInvalid);
  EXPECT_THAT(admission.status.message(), HasSubstr("context_length_exceeded"));
  EXPECT_THAT(admission.status.message(), HasSubstr("501"));
  EXPECT_THAT(admission.status.message(), HasSubstr("500"));
  EXPECT_EQ(admission.retry_after_s, 0);
  admission = Offer(Of(350, 51));
  EXPECT_EQ(admission.status.code(), Code::kInvalid);
  EXPECT_THAT(admission.status.message(), HasSubstr("at most 400"));
  EXPECT_TRUE(Offer(Of(350, 50)).ok());
}

TEST_F(InboxTest, NonsenseIsInvalid) {
  EXPECT_EQ(Offer(Of(0, 5)).status.code(), Code::kInvalid);
  EXPECT_EQ(Offer(Of(5, -1)).status.code(), Code::kInvalid);
  Request outside = Of(5, 5);
  outside.prompt[2] = 50;
  EXPECT_EQ(Offer(outside).status.code(), Code::kInvalid);
  EXPECT_EQ(inbox_.counts().num_refused, 3u);
  EXPECT_EQ(inbox_.counts().queued_requests, 0);
}

TEST_F(InboxTest, UnlimitedMeansAsMuchAsMemoryHolds) {
  EXPECT_TRUE(Offer(Of(100, 0)).ok());
  const Inbox::Messages messages = inbox_.Take();
  ASSERT_EQ(messages.arrived.size(), 1u);
  EXPECT_EQ(messages.arrived[0]->max_total, 400);
}

TEST_F(InboxTest, TheQueueIsBoundedByRequests) {
  for (uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(Offer(Of(5, 5, i)).ok());
  inbox_.SetRates({0, 0, 0.5, true});
  const Admission refused = Offer(Of(5, 5, 11));
  EXPECT_EQ(refused.status.code(), Code::kExhausted);
  EXPECT_EQ(refused.queued_requests, 10);
  EXPECT_THAT(refused.status.message(), HasSubstr("0 requests of this tenant"));
  EXPECT_DOUBLE_EQ(refused.retry_after_s, 2);  // a tenth of ten requests at one in two seconds
  const Inbox::Messages messages = inbox_.Take();
  inbox_.OnStarted(messages.arrived[0]->id);
  EXPECT_TRUE(Offer(Of(5, 5, 11)).ok());
}

TEST_F(InboxTest, TheQueueIsBoundedByTokens) {
  EXPECT_TRUE(Offer(Of(300, 5, 1)).ok());
  EXPECT_TRUE(Offer(Of(300, 5, 2)).ok());
  EXPECT_TRUE(Offer(Of(300, 5, 3)).ok());
  inbox_.SetRates({0, 100'000, 0, false});
  const Admission refused = Offer(Of(101, 5, 4));
  EXPECT_EQ(refused.status.code(), Code::kExhausted);
  EXPECT_THAT(refused.status.message(), HasSubstr("0 prompt tokens of this tenant"));
  EXPECT_THAT(refused.status.message(), HasSubstr("has 101; the limit is 1000"));
  // What others ask is not this one's business.
  EXPECT_THAT(refused.status.message(), Not(HasSubstr("900")));
  EXPECT_DOUBLE_EQ(refused.retry_after_s, 10);
}

TEST_F(InboxTest, OneTenantCannotFillTheQueue) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Offer(Of(5, 5, 1)).ok());
  EXPECT_EQ(Offer(Of(5, 5, 1)).status.code(), Code::kExhausted);
  EXPECT_TRUE(Offer(Of(5, 5, 2)).ok());
}

TEST_F(InboxTest, ALongPredictedWaitIsRefusedWithTheSeconds) {
  inbox_.SetRates({5000, 20'000, 0, false});  // 100 s of work under way
  Request request = Of(100, 5);
  const Admission quick = Offer(request);  // a new tenant takes turns: at most twice its own work
  EXPECT_TRUE(quick.ok());
  EXPECT_NEAR(quick.predicted_wait_s, 4, 0.1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Offer(Of(200, 5)).ok());
  inbox_.SetRates({5000, 100'000, 0, false});
  const Admission refused = Offer(request);
  EXPECT_EQ(refused.status.code(), Code::kExhausted);
  EXPECT_THAT(refused.status.message(), HasSubstr("the limit is 60 s"));
  EXPECT_NEAR(refused.retry_after_s, refused.predicted_wait_s - 60, 1e-6);
}

TEST_F(InboxTest, ADeadlineThatCannotBeMetIsRefusedNow) {
  inbox_.SetRates({0, 100'000, 0, false});
  Request request = Of(100, 5);
  request.timeout_us = 5'000'000;
  EXPECT_EQ(Offer(request).status.code(), Code::kExhausted);
  request.timeout_us = 15'000'000;
  EXPECT_TRUE(Offer(request).ok());
}

TEST_F(InboxTest, CancelsAreHandedOverOnce) {
  const Admission first = Offer(Of(5, 5));
  inbox_.Cancel(first.id);
  inbox_.Cancel(first.id);
  inbox_.Cancel(static_cast<SeqId>(77));
  const Inbox::Messages messages = inbox_.Take();
  EXPECT_EQ(messages.cancelled, std::vector<SeqId>{first.id});
  inbox_.OnEnded(first.id);
  inbox_.Cancel(first.id);
  EXPECT_TRUE(inbox_.Take().cancelled.empty());
  EXPECT_EQ(inbox_.counts().num_live, 0);
  EXPECT_EQ(inbox_.counts().queued_tokens, 0);
}

TEST_F(InboxTest, AClosedDoorRefuses) {
  inbox_.Close();
  const Admission refused = Offer(Of(5, 5));
  EXPECT_EQ(refused.status.code(), Code::kExhausted);
  EXPECT_GT(refused.retry_after_s, 0);
}

}  // namespace
}  // namespace hearth
