// SPDX-License-Identifier: Apache-2.0
// What happened to cached blocks in one step, as it goes from the engine to whoever publishes it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/block_key.h"
namespace hearth {

enum class BlockPlace : uint8_t { kMemory, kDisk, kShared };
inline constexpr int kNumPlaces = 3;

struct BlockEvent {
  bool is_stored = false;
  BlockPlace place = BlockPlace::kMemory;
  int group = 0;
  BlockKey key, parent;  // no parent: all zero
};

struct BlockEvents {
  bool is_all = false;  // these are all blocks that memory has: what was told before does not count
  std::vector<BlockEvent> events;
  std::vector<Token> tokens;  // of those that were stored, a block each, in their order
};

}  // namespace hearth
