// SPDX-License-Identifier: Apache-2.0
// Who is idle, whoever leaves first.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "http/connection.h"

namespace hearth {
namespace {

struct Idle final : IdleConnections::Member {
  void CloseIdle() override { ++num_closed; }
  int num_closed = 0;
};

TEST(IdleConnections, ADrainClosesThoseWhoAreIdleAndNobodyElse) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    IdleConnections idle;
    std::vector<Idle> all(1 + random() % 8);
    std::vector<size_t> order(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      idle.Enter(all[i]);
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
    const size_t num_gone = random() % (all.size() + 1);
    for (size_t i = 0; i < num_gone; ++i) idle.Leave(all[order[i]]);
    idle.CloseAll();
    for (size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(all[order[i]].num_closed, i < num_gone ? 0 : 1) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace hearth
