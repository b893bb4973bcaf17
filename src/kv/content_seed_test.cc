// SPDX-License-Identifier: Apache-2.0
#include "kv/content_seed.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth {
namespace {

TEST(ContentSeed, ChangesWithEverythingThatChangesABlock) {
  const BlockContent base{.model_digest = 1,
                          .numerics_version = 2,
                          .layout = {.block_tokens = 16, .groups = {{0, 64, 10}, {128, 32, 5}}},
                          .secret = "a secret"};
  std::set<uint64_t> seeds = {ContentSeed(base)};
  const auto with = [&](auto change) {
    BlockContent other = base;
    change(other);
    return ContentSeed(other);
  };
  seeds.insert(with([](BlockContent& c) { c.model_digest = 2; }));
  seeds.insert(with([](BlockContent& c) { c.numerics_version = 3; }));
  seeds.insert(with([](BlockContent& c) { c.layout.block_tokens = 32; }));
  seeds.insert(with([](BlockContent& c) { c.layout.groups[1].window = 64; }));
  seeds.insert(with([](BlockContent& c) { c.layout.groups[0].block_bytes = 65; }));
  seeds.insert(with([](BlockContent& c) { c.layout.groups.pop_back(); }));
  seeds.insert(with([](BlockContent& c) { c.secret = "a secres"; }));
  seeds.insert(with([](BlockContent& c) { c.secret = ""; }));
  EXPECT_EQ(seeds.size(), 9u);
  EXPECT_EQ(with([](BlockContent& c) { c.layout.groups[0].num_blocks = 99; }), ContentSeed(base));
}

}  // namespace
}  // namespace hearth
