// SPDX-License-Identifier: Apache-2.0
// Blocks of a prompt's beginning that a tier brought: in host memory until their sequence starts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kv/tier_bytes.h"
namespace hearth {

struct StagedBlock {
  int group = 0, entry = 0;          // its place in the sequence's tables
  int part = 0;                      // of the tier that it came from
  TierBytes record;                  // what owns the bytes
  std::span<const std::byte> bytes;  // of the block
};

// Counts its bytes for as long as it lives, in a total that outlives it.
struct StagedPrefix {
  StagedPrefix(int64_t num_bytes, int64_t& in_total) : size(num_bytes), total(&in_total) {
    *total += size;
  }
  ~StagedPrefix() { *total -= size; }
  StagedPrefix(const StagedPrefix&) = delete;
  StagedPrefix& operator=(const StagedPrefix&) = delete;

  int first = 0;          // the blocks before this one were in the cache when it was asked for
  bool is_ahead = false;  // its sequence was still in line, and nobody looked at it since
  int num_blocks = 0;     // how far it reaches, from the prompt's beginning; 0: nothing is usable
  std::vector<StagedBlock> blocks;
  int64_t size;
  int64_t* total;
};

}  // namespace hearth
