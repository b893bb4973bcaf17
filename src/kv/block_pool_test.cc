// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include <gtest/gtest.h>
namespace hearth {
namespace {

void ExpectCounts(const BlockPool& pool, int free, int held, int cached, int pinned) {
  const KvCounts c = pool.counts();
  EXPECT_EQ(c.free, free);
  EXPECT_EQ(c.held, held);
  EXPECT_EQ(c.cached, cached);
  EXPECT_EQ(c.pinned, pinned);
  EXPECT_TRUE(pool.SelfCheck().ok()) << pool.SelfCheck().message();
}

TEST(BlockPool, GivesEveryBlockOnceThenRunsDry) {
  BlockPool pool(3);
  std::vector<bool> seen(3);
  for (int i = 0; i < 3; ++i) {
    const auto id = pool.Take();
    ASSERT_TRUE(id);
    EXPECT_FALSE(seen[static_cast<size_t>(*id)]);
    seen[static_cast<size_t>(*id)] = true;
  }
  EXPECT_FALSE(pool.Take());
  ExpectCounts(pool, 0, 3, 0, 0);
}

TEST(BlockPool, ABlockPassesThroughItsStates) {
  BlockPool pool(2);
  const BlockId id = *pool.Take();
  pool.Share(id);
  pool.Keep(id, 7);
  pool.Pin(id);
  ExpectCounts(pool, 1, 1, 0, 0);
  EXPECT_FALSE(pool.is_sole(id));
  pool.Release(id);
  ExpectCounts(pool, 1, 1, 0, 0);
  EXPECT_FALSE(pool.is_private(id));
  pool.Release(id);
  ExpectCounts(pool, 1, 0, 0, 1);
  pool.Unpin(id);
  ExpectCounts(pool, 1, 0, 1, 0);
  pool.Share(id);  // a cached block is held again
  ExpectCounts(pool, 1, 1, 0, 0);
  pool.Forget(id);
  EXPECT_TRUE(pool.is_private(id));
  pool.Release(id);
  ExpectCounts(pool, 2, 0, 0, 0);
}

TEST(BlockPool, APinOutlivesTheLastHolder) {
  BlockPool pool(1);
  const BlockId id = *pool.Take();
  pool.Pin(id);
  pool.Release(id);
  EXPECT_FALSE(pool.Take());
  ExpectCounts(pool, 0, 0, 0, 1);
  pool.Unpin(id);
  ExpectCounts(pool, 1, 0, 0, 0);
}

TEST(BlockPoolDeathTest, MisuseStopsTheProgram) {
  BlockPool pool(2);
  const BlockId id = *pool.Take();
  pool.Release(id);
  EXPECT_DEATH(pool.Release(id), "bug");
  EXPECT_DEATH(pool.Share(id), "bug");
  EXPECT_DEATH(pool.Unpin(*pool.Take()), "bug");
  EXPECT_DEATH(pool.Release(BlockId::kNone), "bug");
}

}  // namespace
}  // namespace hearth
