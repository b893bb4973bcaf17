// SPDX-License-Identifier: Apache-2.0
// Two sequences that compute the same tokens side by side must not end up with two copies.
#include <gtest/gtest.h>

#include <vector>

#include "kv/kv_space.h"
namespace hearth {
namespace {

std::vector<Token> Count(int count) {
  std::vector<Token> out;
  for (int i = 0; i < count; ++i) out.push_back(i);
  return out;
}

TEST(KvAdopt, ASecondCopyIsGivenBack) {
  KvLayout layout;
  layout.groups = {{0, 64, 8}, {16, 64, 8}};
  KvSpace space(layout, KvPolicy());
  const std::vector<Token> tokens = Count(64);
  KvHolding first, second;
  ASSERT_TRUE(space.Reserve(first, 0, 64));
  ASSERT_TRUE(space.Reserve(second, 0, 64));
  space.Commit(first, tokens, 64);
  space.Commit(second, tokens, 64);
  EXPECT_EQ(second.tables[0], first.tables[0]);
  EXPECT_EQ(space.counts(0).held, 4);
  EXPECT_EQ(space.counts(0).free, 4);
  const KvHolding* both[] = {&first, &second};
  EXPECT_TRUE(space.SelfCheck(both).ok()) << space.SelfCheck(both).message();
  space.Release(first);
  EXPECT_EQ(space.counts(0).held, 4) << "the second still holds them";
  space.Release(second);
  EXPECT_TRUE(space.SelfCheck({}).ok());
  EXPECT_EQ(space.counts(0).held, 0);
}

// A long sequence must get every block that nobody else holds, cached copies of its own included:
// the scheduler promises it that much.
TEST(KvAdopt, TheCachesCopyIsNotOutOfReach) {
  KvLayout layout;
  layout.groups = {{0, 64, 8}, {16, 64, 3}};
  KvSpace space(layout, KvPolicy());
  const std::vector<Token> tokens = Count(128);
  KvHolding first;
  for (int done = 0; done < 64; done += 16) {
    ASSERT_TRUE(space.Reserve(first, done, 16));
    space.Commit(first, tokens, done + 16);
  }
  space.Release(first);
  KvHolding other;  // takes all window blocks, so that nothing can be matched any more
  ASSERT_TRUE(space.Reserve(other, 0, 48));
  space.Release(other);
  KvHolding again;
  EXPECT_EQ(space.Match(tokens, 127, again).tokens, 0);
  for (int done = 0; done < 128; done += 16) {
    ASSERT_TRUE(space.Reserve(again, done, 16)) << "at " << done;
    space.Commit(again, tokens, done + 16);
  }
  space.Release(again);
}

// Two sequences go on from a shared prefix; what lies behind both windows must not keep either from
// going on.
TEST(KvAdopt, WhatBothArePastIsLetGo) {
  KvLayout layout;
  layout.groups = {{0, 64, 32}, {24, 64, 6}};
  KvSpace space(layout, KvPolicy());
  const std::vector<Token> tokens = Count(80);
  KvHolding first, second, other;
  ASSERT_TRUE(space.Reserve(first, 0, 48));
  space.Commit(first, tokens, 48);
  ASSERT_EQ(space.Match(tokens, 48, second).tokens, 48);  // shares two window blocks
  ASSERT_TRUE(space.Reserve(other, 0, 32));
  for (KvHolding* holding : {&first, &second}) {
    ASSERT_TRUE(space.Reserve(*holding, 48, 16));
    space.Commit(*holding, tokens, 64);
  }
  // Of the six blocks four are in sight of somebody, and one behind both.
  EXPECT_EQ(space.Room(first, 64, 16), 16);
  ASSERT_TRUE(space.Reserve(first, 64, 16));
  for (KvHolding* holding : {&first, &second, &other}) space.Release(*holding);
  EXPECT_TRUE(space.SelfCheck({}).ok());
}

}  // namespace
}  // namespace hearth
