// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace hearth {
namespace {

class FairQueueTest : public ::testing::Test {
 protected:
  Sequence& Push(uint32_t tenant, Priority priority = Priority::kNormal, int64_t arrived_us = 0,
                 int tokens = 100) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = static_cast<SeqId>(++last_id_);
    sequence->tokens.resize(static_cast<size_t>(tokens));
    sequence->request.domain.tenant = tenant;
    sequence->request.priority = priority;
    sequence->record.arrived_us = arrived_us;
    all_.push_back(std::move(sequence));
    queue_.Join(tenant);
    queue_.Push(*all_.back());
    return *all_.back();
  }
  // Serves the next one whole: it leaves.
  Sequence* Serve(int64_t now_us = 0) {
    Sequence* next = queue_.Next(now_us, true);
    if (next == nullptr) return nullptr;
    queue_.Remove(*next);
    queue_.Charge(next->request.domain.tenant, next->backlog());
    queue_.Leave(next->request.domain.tenant);
    return next;
  }
  FairQueue queue_{1'000'000};
  std::vector<std::unique_ptr<Sequence>> all_;
  uint64_t last_id_ = 0;
};

TEST_F(FairQueueTest, OldestFirstWithinATenantAndClass) {
  Sequence& a = Push(1);
  Sequence& b = Push(1);
  Sequence& c = Push(1);
  EXPECT_EQ(Serve(), &a);
  EXPECT_EQ(Serve(), &b);
  EXPECT_EQ(Serve(), &c);
  EXPECT_EQ(Serve(), nullptr);
  EXPECT_EQ(queue_.num_tenants(), 0);
}

TEST_F(FairQueueTest, UrgentFirst) {
  Push(1, Priority::kLow);
  Push(1, Priority::kNormal);
  Sequence& urgent = Push(2, Priority::kUrgent);
  EXPECT_EQ(Serve(), &urgent);
  EXPECT_EQ(Serve()->request.priority, Priority::kNormal);
}

TEST_F(FairQueueTest, WaitingMakesUrgent) {
  Sequence& patient = Push(1, Priority::kLow, 0);
  Sequence& fresh = Push(1, Priority::kUrgent, 1'900'000);
  EXPECT_EQ(queue_.ClassOf(patient, 1'900'000), 1);
  EXPECT_EQ(queue_.Next(1'900'000, true), &fresh);
  EXPECT_EQ(queue_.ClassOf(patient, 2'000'000), 0);
  EXPECT_EQ(queue_.Next(2'000'000, true), &patient);  // equal by now, and older
}

TEST_F(FairQueueTest, TenantsShareByTimeNotByRequests) {
  for (int i = 0; i < 40; ++i) Push(1, Priority::kNormal, 0, 400);
  for (int i = 0; i < 160; ++i) Push(2, Priority::kNormal, 0, 100);
  std::map<uint32_t, int> tokens;
  while (tokens[1] + tokens[2] < 16'000) {
    const Sequence* next = Serve();
    tokens[next->request.domain.tenant] += next->backlog();
  }
  EXPECT_NEAR(tokens[1], tokens[2], 800);
}

TEST_F(FairQueueTest, AQuietTenantIsServedNext) {
  for (int i = 0; i < 100; ++i) Push(1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Serve()->request.domain.tenant, 1u);
  queue_.SetCredit(10);
  Push(2);
  EXPECT_EQ(Serve()->request.domain.tenant, 2u);
}

TEST_F(FairQueueTest, WhoStreamsALotPaysForIt) {
  for (int i = 0; i < 30; ++i) {
    Push(1);
    Push(2);
  }
  std::map<uint32_t, int> served;
  for (int i = 0; i < 20; ++i) {
    queue_.Charge(1, 30);  // decoded meanwhile
    ++served[Serve()->request.domain.tenant];
  }
  EXPECT_NEAR(served[1], 7, 1);  // 7 x 100 + 20 x 30 = 13 x 100
}

// Rest is worth the credit and no more: who comes back after long goes first for so long.
TEST_F(FairQueueTest, RestIsWorthTheCreditAndNoMore) {
  queue_.SetCredit(250);
  for (int i = 0; i < 40; ++i) Push(1);
  for (int i = 0; i < 20; ++i) Serve();
  for (int i = 0; i < 20; ++i) Push(2);
  std::vector<uint32_t> order;
  for (int i = 0; i < 6; ++i) order.push_back(Serve()->request.domain.tenant);
  EXPECT_EQ(order, (std::vector<uint32_t>{2, 2, 2, 1, 2, 1}));
}

// Who leaves and comes back at once owes what it owed.
TEST_F(FairQueueTest, LeavingForgivesNothing) {
  queue_.SetCredit(10);
  Push(1);
  Push(2);
  queue_.Charge(1, 1000);
  queue_.Charge(2, 995);
  EXPECT_EQ(Serve()->request.domain.tenant, 2u);
  EXPECT_EQ(Serve()->request.domain.tenant, 1u);
  EXPECT_EQ(queue_.num_tenants(), 0);
  EXPECT_EQ(queue_.UsedUs(1), 1100);
  EXPECT_EQ(queue_.UsedUs(2), 1095);
}

// Tenants that come once are not kept for ever.
TEST_F(FairQueueTest, ForgetsWhoDoesNotMatterAnyMore) {
  queue_.SetCredit(1'000);
  for (uint32_t tenant = 1; tenant <= 20'000; ++tenant) {
    Push(tenant);
    Serve();
  }
  EXPECT_LE(queue_.num_known(), 5'000);
}

TEST_F(FairQueueTest, WhatIsExpectedOfAStepCountsWithinIt) {
  Sequence& a = Push(1);
  Sequence& b = Push(2);
  EXPECT_EQ(queue_.Next(0, true), &a);
  queue_.Expect(1, 5);
  EXPECT_EQ(queue_.Next(0, true), &b);
  queue_.BeginRound();
  EXPECT_EQ(queue_.Next(0, true), &a);
}

TEST_F(FairQueueTest, OnlyThoseBelowALevel) {
  Push(1);
  Sequence& b = Push(2);
  queue_.Charge(1, 100);
  EXPECT_EQ(queue_.Next(0, true, 100), &b);
  EXPECT_EQ(queue_.Next(0, true, 0), nullptr);
  EXPECT_EQ(queue_.MostUsedUs(), 100);
  EXPECT_EQ(queue_.LeastUsedUs(0, kNumPriorities, {}), 0);
  EXPECT_EQ(queue_.LeastUsedUs(0, kNumPriorities, {2}), 100);
  EXPECT_EQ(queue_.LeastUsedUs(0, 0, {}), FairQueue::kEverybody);  // nobody is as urgent
}

TEST_F(FairQueueTest, RunningPromptsGoOnWhenNobodyMayStart) {
  Sequence& running = Push(1);
  queue_.Remove(running);
  running.running = true;
  queue_.Push(running);
  Push(2, Priority::kUrgent);
  EXPECT_EQ(queue_.Next(0, false), &running);
  running.num_planned = running.backlog();
  EXPECT_EQ(queue_.Next(0, false), nullptr);
  EXPECT_NE(queue_.Next(0, true), nullptr);
}

}  // namespace
}  // namespace hearth
