// SPDX-License-Identifier: Apache-2.0
// What the prefix cache offers to whoever begins as somebody before, and to whom it does not.
#include <gtest/gtest.h>

#include <numeric>

#include "kv/kv_space.h"

namespace hearth {
namespace {

KvSpace MakeSpace() {
  KvLayout layout;
  layout.groups = {{0, 64, 32}};
  return KvSpace(layout, {});
}

// `count` tokens from `first` on, one more each.
std::vector<Token> Tokens(Token first, int count) {
  std::vector<Token> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

void Play(KvSpace& kv, const std::vector<Token>& tokens, uint64_t salt) {
  KvHolding holding;
  holding.domain = {1, salt};
  const auto size = static_cast<int>(tokens.size());
  const int found = kv.Match(tokens, size, holding).tokens;
  ASSERT_TRUE(kv.Reserve(holding, found, size - found));
  kv.Commit(holding, tokens, size);
  kv.Release(holding);
}

// What the cache says after `tokens`, of which all but the last are computed.
std::vector<Token> After(KvSpace& kv, const std::vector<Token>& tokens, uint64_t salt, int count) {
  KvHolding holding;
  holding.domain = {1, salt};
  const auto size = static_cast<int>(tokens.size());
  const int found = kv.Match(tokens, size - 1, holding).tokens;
  EXPECT_TRUE(kv.Reserve(holding, found, size - found));
  kv.Commit(holding, tokens, size - 1);
  std::vector<Token> out;
  kv.Continue(holding, tokens, count, out);
  kv.Release(holding);
  return out;
}

TEST(PrefixContinue, GoesOnWhereAnotherWent) {
  KvSpace kv = MakeSpace();
  const std::vector<Token> whole = Tokens(0, 64);
  Play(kv, whole, 5);
  for (int size = 1; size < 64; ++size) {
    const std::vector<Token> begun(whole.begin(), whole.begin() + size);
    EXPECT_EQ(After(kv, begun, 5, 7), Tokens(size, std::min(7, 64 - size))) << size;
    EXPECT_TRUE(After(kv, begun, 6, 7).empty()) << "another salt's";
  }
  EXPECT_TRUE(After(kv, whole, 5, 7).empty());
  std::vector<Token> differs(whole.begin(), whole.begin() + 40);
  differs[38] = 9;
  EXPECT_TRUE(After(kv, differs, 5, 7).empty());
}

TEST(PrefixContinue, OfSeveralTheNewest) {
  KvSpace kv = MakeSpace();
  std::vector<Token> one = Tokens(0, 48), two = one;
  for (size_t i = 20; i < two.size(); ++i) two[i] += 500;
  Play(kv, one, 5);
  Play(kv, two, 5);
  const std::vector<Token> begun = Tokens(0, 20);
  EXPECT_EQ(After(kv, begun, 5, 3), Tokens(520, 3));
  EXPECT_TRUE(kv.SelfCheck().ok());
}

}  // namespace
}  // namespace hearth
