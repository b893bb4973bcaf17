// SPDX-License-Identifier: Apache-2.0
#include "kv/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

KvLayout Of(std::vector<int> windows) {
  KvLayout layout;
  for (const int window : windows) {
    layout.groups.push_back({.window = window, .block_bytes = 10, .num_blocks = 3});
  }
  return layout;
}

TEST(KvLayout, NamesGroupsForPeople) {
  EXPECT_EQ(NameOfGroup(Of({0, 128}), 0), "full");
  EXPECT_EQ(NameOfGroup(Of({0, 128}), 1), "window");
  EXPECT_EQ(NameOfGroup(Of({128}), 0), "window");
  EXPECT_EQ(NameOfGroup(Of({0, 128, 1024}), 2), "window_1024");
  EXPECT_EQ(NameOfGroup(Of({64, 32}), 1), "window_32");
}

TEST(KvLayout, CountsBlocksAndBytes) {
  KvLayout layout = Of({0, 128});
  layout.block_tokens = 32;
  EXPECT_EQ(layout.BlocksUpTo(0), 0);
  EXPECT_EQ(layout.BlocksUpTo(32), 1);
  EXPECT_EQ(layout.BlocksUpTo(33), 2);
  EXPECT_EQ(layout.total_bytes(), 60);
  EXPECT_EQ(layout.full_tokens(), 96);
  EXPECT_EQ(Of({128}).full_tokens(), 0);
  EXPECT_TRUE(layout.has_full());
  EXPECT_FALSE(Of({5}).has_full());
  EXPECT_FALSE(KvLayout().has_full());
}

TEST(KvLayout, KnowsItsRules) {
  EXPECT_TRUE(CheckLayout(Of({0, 128, 1024})).ok());
  EXPECT_TRUE(CheckLayout(Of({16})).ok());
  EXPECT_TRUE(CheckLayout(KvLayout()).ok());
  EXPECT_THAT(CheckLayout(Of({128, 0})).message(), HasSubstr("not the first"));
  EXPECT_THAT(CheckLayout(Of({0, 8, 8})).message(), HasSubstr("same window of 8"));
  EXPECT_THAT(CheckLayout(Of({0, -1})).message(), HasSubstr("window of -1"));
  KvLayout layout = Of({0});
  layout.block_tokens = 0;
  EXPECT_THAT(CheckLayout(layout).message(), HasSubstr("blocks of 0 tokens"));
  layout = Of({0});
  layout.groups[0].block_bytes = 0;
  EXPECT_THAT(CheckLayout(layout).message(), HasSubstr("0 bytes"));
}

}  // namespace
}  // namespace hearth
