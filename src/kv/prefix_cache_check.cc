// SPDX-License-Identifier: Apache-2.0
// The prefix cache checks itself: every link and count against every other.
#include "kv/prefix_cache.h"
namespace hearth {

Status PrefixCache::CheckNode(int index) const {
  const Node& node = nodes_[index];
  const auto bad = [&](const char* what) {
    return Error(Code::kCorrupt, "prefix cache: node %d (block %d of its chain): %s", index,
                 node.index, what);
  };
  int children = 0, busy = 0;
  for (int child = node.first_child; child >= 0; child = nodes_[child].next_sibling) {
    const Node& c = nodes_[child];
    if (!c.is_alive || c.parent != index || c.index != node.index + 1) return bad("child astray");
    if (c.prev_sibling >= 0 && nodes_[c.prev_sibling].next_sibling != child) {
      return bad("siblings astray");
    }
    if (++children > node.num_children) break;
    busy += c.num_busy > 0;
  }
  if (children != node.num_children) return bad("children miscounted");
  if (node.index < 0) {
    const auto root = roots_.find(node.key.lo);
    if (root == roots_.end() || root->second != index) return bad("root not found by its salt");
    return children > 0 ? Status() : bad("root without children");
  }
  if (node.parent < 0 || !nodes_[node.parent].is_alive) return bad("outlived its parent");
  if (Lookup(node.key) != index) return bad("not found by its key");
  if (node.full != BlockId::kNone && full_.node(node.full) != index)
    return bad("full block astray");
  if (node.window != BlockId::kNone && window_.node(node.window) != index) {
    return bad("window block astray");
  }
  if (has_full_ != (node.full != BlockId::kNone)) return bad("without its full block");
  if (!has_full_ && children == 0 && node.window == BlockId::kNone) return bad("holds nothing");
  busy += has_full_ && full_.in_use(node.full);
  if (has_full_ && busy != node.num_busy) return bad("users miscounted");
  return Status();
}

Status PrefixCache::CheckQueues(int index) const {
  const Node& node = nodes_[index];
  const bool evictable =
      has_full_ && node.index >= 0 && node.num_busy == 0 && node.num_children == 0;
  if (evictable != full_queue_.contains(index)) {
    return Error(Code::kCorrupt, "prefix cache: node %d %s among full blocks to evict", index,
                 evictable ? "is missing" : "has no place");
  }
  const bool idle = node.window != BlockId::kNone && !window_.in_use(node.window);
  if (idle != window_queue_.contains(index)) {
    return Error(Code::kCorrupt, "prefix cache: node %d %s among window blocks to evict", index,
                 idle ? "is missing" : "has no place");
  }
  return Status();
}

Status PrefixCache::SelfCheck() const {
  int alive = 0, reclaimable = 0, cached = 0, cached_window = 0, kept = 0, kept_window = 0;
  std::unordered_map<uint32_t, int> by_tenant, window_by_tenant;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[i];
    if (!node.is_alive) continue;
    HEARTH_TRY(CheckNode(i));
    HEARTH_TRY(CheckQueues(i));
    if (node.index < 0) continue;
    ++alive;
    reclaimable += has_full_ && node.num_busy == 0;
    if (node.full != BlockId::kNone) {
      ++kept;
      const int idle = !full_.in_use(node.full);
      cached += idle;
      by_tenant[node.tenant] += idle;
    }
    if (node.window != BlockId::kNone) {
      ++kept_window;
      const int idle = !window_.in_use(node.window);
      cached_window += idle;
      window_by_tenant[node.tenant] += idle;
    }
  }
  if (alive != num_nodes_ || reclaimable != num_reclaimable_) {
    return Error(Code::kCorrupt, "prefix cache: %d nodes, %d reclaimable; counted %d, %d", alive,
                 reclaimable, static_cast<int>(num_nodes_), num_reclaimable_);
  }
  // Blocks that a pool believes kept but no node names would never come back.
  if (cached != full_.counts().cached || cached_window != window_.counts().cached ||
      kept != full_.num_kept() || kept_window != window_.num_kept()) {
    return Error(Code::kCorrupt, "prefix cache: %d+%d blocks cached; the pools say %d+%d", cached,
                 cached_window, full_.counts().cached, window_.counts().cached);
  }
  for (const auto& [tenant, count] : by_tenant) {
    if (full_queue_.cached(tenant) != count ||
        window_queue_.cached(tenant) != window_by_tenant[tenant]) {
      return Error(Code::kCorrupt,
                   "prefix cache: tenant %u is charged for the wrong number of"
                   " blocks",
                   tenant);
    }
  }
  HEARTH_TRY(full_queue_.SelfCheck());
  return window_queue_.SelfCheck();
}

}  // namespace hearth
