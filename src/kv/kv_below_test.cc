// SPDX-License-Identifier: Apache-2.0
// What a tier has leaves memory before its equals.
#include <gtest/gtest.h>

#include <vector>

#include "kv/kv_space.h"
namespace hearth {
namespace {

class KvBelow : public ::testing::Test {
 protected:
  KvBelow() : space_(Layout(), KvPolicy()) {}
  static KvLayout Layout() {
    KvLayout layout;
    layout.groups = {{0, 64, 4}};
    return layout;
  }
  static std::vector<Token> Tokens(Token first) {
    std::vector<Token> out;
    for (Token i = 0; i < 17; ++i) out.push_back(first + i);
    return out;
  }
  // Computes a block; says its key.
  BlockKey Compute(Token first) {
    KvHolding holding;
    EXPECT_TRUE(space_.Reserve(holding, 0, 16));
    space_.Commit(holding, Tokens(first), 16);
    const BlockKey key = holding.keys.at(0);
    space_.Release(holding);
    return key;
  }
  void EvictOne() {
    KvHolding other;
    EXPECT_TRUE(space_.Reserve(other, 0, 48));
    space_.Release(other);
    EXPECT_TRUE(space_.SelfCheck({}).ok()) << space_.SelfCheck({}).message();
  }
  bool IsHere(Token first) {
    KvHolding holding;
    const int found = space_.Match(Tokens(first), 16, holding).tokens;
    space_.Release(holding);
    return found == 16;
  }
  KvSpace space_;
};

TEST_F(KvBelow, TheOldestGoesWhenNoTierHasAny) {
  Compute(0);
  Compute(100);
  EvictOne();
  EXPECT_FALSE(IsHere(0));
  EXPECT_TRUE(IsHere(100));
}

TEST_F(KvBelow, WhatATierHasGoesBeforeWhatItHasNot) {
  Compute(0);
  const BlockKey younger = Compute(100);
  space_.MarkBelow(0, younger);
  EXPECT_TRUE(space_.SelfCheck({}).ok()) << space_.SelfCheck({}).message();
  EvictOne();
  EXPECT_TRUE(IsHere(0));
  EXPECT_FALSE(IsHere(100));
}

TEST_F(KvBelow, AmongThoseThatATierHasTheOldestGoes) {
  space_.MarkBelow(0, Compute(0));
  space_.MarkBelow(0, Compute(100));
  EvictOne();
  EXPECT_FALSE(IsHere(0));
  EXPECT_TRUE(IsHere(100));
}

TEST_F(KvBelow, WhatIsNotHereIsNoMatter) {
  const BlockKey key = Compute(0);
  space_.DropCache();
  space_.MarkBelow(0, key);
  EXPECT_TRUE(space_.SelfCheck({}).ok());
}

}  // namespace
}  // namespace hearth
