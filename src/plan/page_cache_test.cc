// SPDX-License-Identifier: Apache-2.0
#include "plan/page_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "sim/random.h"

namespace hearth {
namespace {

TEST(PageCache, KeepsTheLastUsed) {
  PageCache cache(3);
  for (const uint64_t name : {1, 2, 3, 1, 4}) cache.Use(name);
  EXPECT_TRUE(cache.Has(1) && cache.Has(3) && cache.Has(4));
  EXPECT_FALSE(cache.Has(2));
  cache.SetCapacity(1);
  EXPECT_TRUE(cache.Has(4));
  EXPECT_EQ(cache.size(), 1);
  cache.Clear();
  EXPECT_EQ(cache.size(), 0);
  EXPECT_FALSE(cache.Has(4));
  PageCache none(0);
  none.Use(1);
  EXPECT_EQ(none.size(), 0);
}

// Names that fall on each other's places, against a list.
TEST(PageCache, IsAListThatIsFast) {
  SimRandom random(7);
  PageCache cache(50);
  std::deque<uint64_t> list;  // newest first
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t name = static_cast<uint64_t>(random.Between(0, 120)) * 64 + 63;
    const bool has = std::find(list.begin(), list.end(), name) != list.end();
    ASSERT_EQ(cache.Has(name), has) << i;
    cache.Use(name);
    std::erase(list, name);
    list.push_front(name);
    size_t capacity = 50;
    if (i % 997 == 996) cache.SetCapacity(static_cast<int64_t>(capacity = 20));
    while (list.size() > capacity) list.pop_back();
    if (capacity != 50) cache.SetCapacity(50);
    ASSERT_EQ(cache.size(), static_cast<int64_t>(list.size()));
  }
}

}  // namespace
}  // namespace hearth
