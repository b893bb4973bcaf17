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
  HEARTH_TRY(CheckBlocks(index));
  if (has_full_ && busy + pool(0).in_use(slot(0, index).id) != node.num_busy) {
    return bad("users miscounted");
  }
  return Status();
}

Status PrefixCache::CheckBlocks(int index) const {
  const Node& node = nodes_[index];
  for (int group = 0; group < num_groups(); ++group) {
    const BlockId id = slot(group, index).id;
    if (id != BlockId::kNone && pool(group).node(id) != index) {
      return Error(Code::kCorrupt, "prefix cache: node %d: its block of group %d is astray", index,
                   group);
    }
  }
  const bool lacks_full = has_full_ && slot(0, index).id == BlockId::kNone;
  if (lacks_full || (node.num_children == 0 && !HasBlocks(index))) {
    return Error(Code::kCorrupt, "prefix cache: node %d has no blocks", index);
  }
  return Status();
}

Status PrefixCache::CheckQueues(int index) const {
  const Node& node = nodes_[index];
  for (int group = 0; group < num_groups(); ++group) {
    const BlockId id = slot(group, index).id;
    const bool evictable = is_full(group)
                               ? node.index >= 0 && node.num_busy == 0 && node.num_children == 0
                               : id != BlockId::kNone && !pool(group).in_use(id);
    if (evictable != queue(group).contains(index)) {
      return Error(Code::kCorrupt, "prefix cache: node %d %s among blocks of group %d to evict",
                   index, evictable ? "is missing" : "has no place", group);
    }
    if (evictable && queue(group).worth(index) != Worth(group, index)) {
      return Error(Code::kCorrupt, "prefix cache: node %d is queued in group %d with another worth",
                   index, group);
    }
  }
  return Status();
}

// Blocks that a pool believes kept but no node names would never come back.
Status PrefixCache::CheckCounts(int group) const {
  int cached = 0, kept = 0;
  std::unordered_map<uint32_t, int> by_tenant;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const BlockId id = slot(group, i).id;
    if (!nodes_[i].is_alive || id == BlockId::kNone) continue;
    ++kept;
    const int idle = !pool(group).in_use(id);
    cached += idle;
    by_tenant[nodes_[i].tenant] += idle;
  }
  if (cached != pool(group).counts().cached || kept != pool(group).num_kept()) {
    return Error(Code::kCorrupt,
                 "prefix cache: %d blocks of group %d cached, %d kept; the pool says %d, %d",
                 cached, group, kept, pool(group).counts().cached, pool(group).num_kept());
  }
  for (const auto& [tenant, count] : by_tenant) {
    if (queue(group).cached(tenant) != count) {
      return Error(Code::kCorrupt, "prefix cache: tenant %u is charged for %d blocks instead of %d",
                   tenant, queue(group).cached(tenant), count);
    }
  }
  return queue(group).SelfCheck();
}

Status PrefixCache::SelfCheck() const {
  int alive = 0, reclaimable = 0;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[i];
    if (!node.is_alive) continue;
    HEARTH_TRY(CheckNode(i));
    HEARTH_TRY(CheckQueues(i));
    if (node.index < 0) continue;
    ++alive;
    reclaimable += has_full_ && node.num_busy == 0;
  }
  if (alive != num_nodes_ || reclaimable != num_reclaimable_) {
    return Error(Code::kCorrupt, "prefix cache: %d nodes, %d reclaimable; counted %d, %d", alive,
                 reclaimable, static_cast<int>(num_nodes_), num_reclaimable_);
  }
  for (int group = 0; group < num_groups(); ++group) HEARTH_TRY(CheckCounts(group));
  return Status();
}

}  // namespace hearth
