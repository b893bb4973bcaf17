// SPDX-License-Identifier: Apache-2.0
#include "kv/block_key.h"

#include <bit>
#include <cstring>

namespace hearth {
namespace {

// SipHash-2-4 with 128 bits of output: a keyed hash made for tables whose keys strangers choose.
// Block keys are not trusted beyond that: a hit compares tokens too.
struct Sip {
  uint64_t v0, v1, v2, v3;

  Sip(uint64_t k0, uint64_t k1)
      : v0(k0 ^ 0x736f6d6570736575u),
        v1(k1 ^ 0x646f72616e646f6du ^ 0xee),
        v2(k0 ^ 0x6c7967656e657261u),
        v3(k1 ^ 0x7465646279746573u) {}

  void Round() {
    v0 += v1, v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1, v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void Word(uint64_t word) {
    v3 ^= word;
    Round(), Round();
    v0 ^= word;
  }
  // The last word of a message carries its length in the top byte, and what is left over of it.
  BlockKey Finish(uint64_t num_bytes, uint64_t rest = 0) {
    Word(num_bytes << 56 | rest);
    v2 ^= 0xee;
    for (int i = 0; i < 4; ++i) Round();
    BlockKey key;
    key.lo = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    for (int i = 0; i < 4; ++i) Round();
    key.hi = v0 ^ v1 ^ v2 ^ v3;
    return key;
  }
};

}  // namespace

BlockKey ChainKey(const ChainSeed& chain, const BlockKey& parent, std::span<const Token> tokens) {
  static_assert(sizeof(Token) == 4 && std::endian::native == std::endian::little);
  Sip sip(chain.seed, chain.salt);
  sip.Word(parent.lo);
  sip.Word(parent.hi);
  for (size_t i = 0; i + 1 < tokens.size(); i += 2) {
    uint64_t pair;
    std::memcpy(&pair, &tokens[i], sizeof(pair));
    sip.Word(pair);
  }
  const uint64_t last = tokens.size() % 2 == 0 ? 0 : static_cast<uint32_t>(tokens.back());
  return sip.Finish(sizeof(BlockKey) + tokens.size() * sizeof(Token), last);
}

uint64_t FoldSeed(uint64_t seed, uint64_t value) {
  Sip sip(seed, 0);
  sip.Word(value);
  return sip.Finish(sizeof(value)).lo;
}

}  // namespace hearth
