// SPDX-License-Identifier: Apache-2.0
// How K and V are cut into blocks. Who holds which block, and what lies inside one, is elsewhere.
#pragma once
#include <cstdint>
namespace hearth {

// Tokens per KV block. The same dimension of 16 keys, 16 bits each, widens to one AVX-512 vector: a
// block is exactly one vector of positions.
inline constexpr int kBlockTokens = 16;

// Layers that look back equally far form a group with its own blocks: those that see everything,
// and those with a window, which hold only what the window needs.
enum class KvGroup : uint8_t { kFull, kWindow };

struct KvGroupLayout {
  int64_t block_bytes = 0;  // all layers of the group, K and V; 0 when the model has no such layer
  int num_blocks = 0;
  int window = 0;  // how far the group's layers look back, themselves included; 0 = all the way
};
struct KvLayout {
  KvGroupLayout full, window;
};

}  // namespace hearth
