// SPDX-License-Identifier: Apache-2.0
#include "kv/layout.h"

namespace hearth {

int64_t KvLayout::total_bytes() const {
  int64_t bytes = 0;
  for (const KvGroupLayout& group : groups) bytes += group.block_bytes * group.num_blocks;
  return bytes;
}

int64_t KvLayout::full_tokens() const {
  return has_full() ? int64_t{groups[0].num_blocks} * block_tokens : 0;
}

Status CheckLayout(const KvLayout& layout) {
  if (layout.block_tokens < 1) {
    return Error(Code::kInvalid, "KV blocks of %d tokens", layout.block_tokens);
  }
  for (int i = 0; i < layout.num_groups(); ++i) {
    const KvGroupLayout& group = layout.group(i);
    if (group.window < 0 || group.block_bytes < 1 || group.num_blocks < 0) {
      return Error(Code::kInvalid, "KV group %d: window of %d, %d blocks of %lld bytes", i,
                   group.window, group.num_blocks, static_cast<long long>(group.block_bytes));
    }
    if (i > 0 && group.window == 0) {
      return Error(Code::kInvalid, "KV group %d sees everything but is not the first", i);
    }
    for (int other = 0; other < i; ++other) {
      if (layout.group(other).window == group.window) {
        return Error(Code::kInvalid, "KV groups %d and %d have the same window of %d", other, i,
                     group.window);
      }
    }
  }
  return Status();
}

std::string NameOfGroup(const KvLayout& layout, int group) {
  const int window = layout.group(group).window;
  if (window == 0) return "full";
  const int num_windows = layout.num_groups() - layout.has_full();
  return num_windows == 1 ? "window" : "window_" + std::to_string(window);
}

}  // namespace hearth
