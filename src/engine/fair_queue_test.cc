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
  FairQueue queue_{1'000'000, 50};
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

TEST_F(FairQueueTest, TenantsShareByTokensNotByRequests) {
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
  Push(2);
  const uint32_t first = Serve()->request.domain.tenant, second = Serve()->request.domain.tenant;
  EXPECT_TRUE(first == 2 || second == 2);
}

TEST_F(FairQueueTest, WhoStreamsALotPaysForIt) {
  for (int i = 0; i < 30; ++i) {
    Push(1);
    Push(2);
  }
  std::map<uint32_t, int> served;
  for (int i = 0; i < 20; ++i) {
    queue_.Charge(1, 30);  // tokens decoded meanwhile
    ++served[Serve()->request.domain.tenant];
  }
  EXPECT_NEAR(served[1], 7, 1);  // 7 x 100 + 20 x 30 = 13 x 100
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
