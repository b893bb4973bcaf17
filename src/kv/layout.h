// SPDX-License-Identifier: Apache-2.0
// How K and V are cut into blocks. Who holds which block, and what lies inside one, is elsewhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
namespace hearth {

// A sequence's blocks of one group: entry i holds the positions [i * block_tokens, (i + 1) *
// block_tokens).
using BlockTable = std::vector<BlockId>;

// Layers that look back equally far form a group with blocks of its own. A group with a window
// holds only what the window needs.
struct KvGroupLayout {
  int window = 0;           // how far its layers look back, themselves included; 0 = all the way
  int64_t block_bytes = 0;  // K and V of all its layers
  int num_blocks = 0;
};

inline constexpr int kDefaultBlockTokens = 16;

// What K and V are kept as: whole numbers with a scale per token and head. int8 takes half the
// memory and gives other bits (docs/numerics.md), so it is asked for and never chosen.
enum class KvCode : uint8_t { kInt16, kInt8 };

// What a backend says of its KV memory. Groups are known by their place in the list: the one that
// sees everything comes first if there is one, and no two have the same window.
struct KvLayout {
  int block_tokens = kDefaultBlockTokens;  // in a block, the same in every group
  KvCode code = KvCode::kInt16;
  std::vector<KvGroupLayout> groups;

  int num_groups() const { return static_cast<int>(groups.size()); }
  const KvGroupLayout& group(int index) const { return groups[static_cast<size_t>(index)]; }
  // Group 0 sees everything.
  bool has_full() const { return !groups.empty() && groups[0].window == 0; }
  int64_t BlocksUpTo(int64_t tokens) const { return (tokens + block_tokens - 1) / block_tokens; }
  int64_t total_bytes() const;
  int64_t full_tokens() const;  // that the group which sees everything holds; 0: there is none
};

// That the layout keeps its own rules. An error is a bug of the backend that made it.
Status CheckLayout(const KvLayout& layout);

// For people: "full", "window", or "window_128" where there are several.
std::string NameOfGroup(const KvLayout& layout, int group);

}  // namespace hearth
