// SPDX-License-Identifier: Apache-2.0
#include "kv/eviction_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>
namespace hearth {
namespace {

TEST(EvictionQueue, LeastWorthFirstAndAgesTheRest) {
  EvictionQueue queue(100);
  queue.AddCached(1, 3);
  queue.Add(10, 1, 3.0);
  queue.Add(11, 1, 1.0);
  queue.Add(12, 1, 2.0);
  EXPECT_EQ(queue.Next(), 11);
  EXPECT_EQ(queue.level(), 0.0);
  queue.Evicted(11);
  EXPECT_EQ(queue.level(), 1.0);
  queue.Remove(12);  // in use again: that ages nobody
  EXPECT_EQ(queue.level(), 1.0);
  EXPECT_EQ(queue.Next(), 10);
}

TEST(EvictionQueue, EqualWorthGoesInOrderOfArrival) {
  EvictionQueue queue(100);
  queue.AddCached(1, 50);
  for (int i = 0; i < 50; ++i) queue.Add(i * 7 % 50, 1, 1.0);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(queue.Next(), i * 7 % 50);
    queue.Evicted(*queue.Next());
  }
  EXPECT_FALSE(queue.Next());
}

TEST(EvictionQueue, OverQuotaGoesFirstWithoutAgingOthers) {
  EvictionQueue queue(1);
  queue.AddCached(1, 1);
  queue.Add(0, 1, 1.0);
  queue.AddCached(2, 2);
  queue.Add(1, 2, 9.0);
  queue.Add(2, 2, 8.0);
  ASSERT_EQ(queue.Next(), 2);
  queue.Evicted(2);
  queue.AddCached(2, -1);
  EXPECT_EQ(queue.level(), 0.0);
  EXPECT_EQ(queue.Next(), 0);  // nobody is over now
}

// Against a plain list that is searched from end to end.
TEST(EvictionQueue, AgreesWithASortedList) {
  struct Item {
    int node;
    uint32_t tenant;
    double worth;
    int turn;
  };
  for (int seed = 0; seed < 30; ++seed) {
    std::mt19937 rng(static_cast<uint32_t>(seed));
    const int quota = 1 + static_cast<int>(rng() % 20);
    EvictionQueue queue(quota);
    std::vector<Item> items;
    std::vector<int> cached(5);
    for (int step = 0; step < 800; ++step) {
      if (rng() % 3 != 0) {
        const int node = static_cast<int>(rng() % 200);
        if (queue.contains(node)) continue;
        const Item item = {node, static_cast<uint32_t>(rng() % 5), double(rng() % 50), step};
        queue.AddCached(item.tenant, 1);
        ++cached[item.tenant];
        queue.Add(node, item.tenant, item.worth);
        items.push_back(item);
      } else if (!items.empty()) {
        const auto rank = [&](const Item& i) {
          return std::tuple(cached[i.tenant] <= quota, i.worth, i.turn);
        };
        auto next = std::ranges::min_element(items, {}, rank);
        ASSERT_EQ(queue.Next(), next->node);
        const bool evict = rng() % 2 == 0;
        if (!evict) next = items.begin() + static_cast<ptrdiff_t>(rng() % items.size());
        evict ? queue.Evicted(next->node) : queue.Remove(next->node);
        queue.AddCached(next->tenant, -1);
        --cached[next->tenant];
        items.erase(next);
      }
      ASSERT_TRUE(queue.SelfCheck().ok()) << queue.SelfCheck().message();
      ASSERT_EQ(queue.size(), static_cast<int>(items.size()));
    }
  }
}

}  // namespace
}  // namespace hearth
