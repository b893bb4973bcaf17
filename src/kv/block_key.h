// SPDX-License-Identifier: Apache-2.0
// Names for blocks: 128 bits that stand for a block of tokens and everything before them.
#pragma once
#include <compare>
#include <cstdint>
#include <span>

#include "base/ids.h"
namespace hearth {

// 128 bits that name a block by everything before it.
struct BlockKey {
  uint64_t hi = 0, lo = 0;
  auto operator<=>(const BlockKey&) const = default;
};

// The secret half and the public half of a chain: `seed` stands for model, numerics and KV type,
// `salt` for whoever may share. A chain's first block has an all-zero parent.
struct ChainSeed {
  uint64_t seed = 0, salt = 0;
};

// key(i) = hash(seed, salt; key(i-1), the tokens of block i).
BlockKey ChainKey(const ChainSeed& chain, const BlockKey& parent, std::span<const Token> tokens);

// For a policy's `key_seed`: mixes one more number into a seed.
uint64_t FoldSeed(uint64_t seed, uint64_t value);

}  // namespace hearth
