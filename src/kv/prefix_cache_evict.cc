// SPDX-License-Identifier: Apache-2.0
// The prefix cache's other half: who uses a block, and which one goes when room is needed.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/mutant.h"
#include "kv/prefix_cache.h"
namespace hearth {
namespace {

// Turnovers of the pool that unused window blocks survive, by class. What is lost with a cut is
// lost in every later turn of a conversation; what is lost with a multiple of `window_every` only
// when somebody branches there. Plain ones go as soon as room is needed.
constexpr double kEveryWeight = 1, kCutWeight = 4;
constexpr uint16_t kMaxHits = 0xffff;

// A block that was reused before will be again; each doubling of its hits adds its cost once more.
double Popularity(uint16_t hits) { return 1.0 + std::bit_width(hits); }

}  // namespace

double PrefixCache::Worth(const Node& node) const {
  const double cost = 1.0 + double{kBlockTokens} * node.index / policy_.attention_knee;
  return node.level + cost * Popularity(node.hits);
}

double PrefixCache::WindowWorth(const Node& node) const {
  if (node.keep == KeepClass::kPlain) return node.window_level;
  const double weight = node.keep == KeepClass::kCut ? kCutWeight : kEveryWeight;
  const double cost = 1.0 + double{kBlockTokens} * node.index / policy_.attention_knee;
  return node.window_level + weight * cost * Popularity(node.window_hits);
}

void PrefixCache::Touch(const KvNode& node, bool with_window) {
  Node& n = nodes_[node.index];
  if (n.hits < kMaxHits) ++n.hits;
  if (with_window && n.window_hits < kMaxHits) ++n.window_hits;
}

void PrefixCache::KeepCut(const KvNode& node) {
  if (HEARTH_MUTANT(15)) return;  // cuts are like any other place
  int at = node.index;
  for (int i = 0; i < window_span_ && nodes_[at].index >= 0; ++i, at = nodes_[at].parent) {
    Node& n = nodes_[at];
    n.keep = KeepClass::kCut;
    if (!window_queue_.contains(at)) continue;
    window_queue_.Remove(at);
    n.window_level = window_queue_.level();
    window_queue_.Add(at, n.tenant, WindowWorth(n));
  }
}

void PrefixCache::Hold(KvGroup group, BlockId id) {
  const bool was_idle = !pool(group).in_use(id);
  pool(group).Share(id);
  if (was_idle) BecameBusy(group, pool(group).node(id));
}

void PrefixCache::Pin(KvGroup group, BlockId id) {
  const bool was_idle = !pool(group).in_use(id);
  pool(group).Pin(id);
  if (was_idle) BecameBusy(group, pool(group).node(id));
}

void PrefixCache::Drop(KvGroup group, BlockId id) {
  const int node = pool(group).node(id);
  pool(group).Release(id);
  if (node != BlockPool::kNoNode && !pool(group).in_use(id)) BecameIdle(group, node);
}

void PrefixCache::Unpin(KvGroup group, BlockId id) {
  const int node = pool(group).node(id);
  pool(group).Unpin(id);
  if (node != BlockPool::kNoNode && !pool(group).in_use(id)) BecameIdle(group, node);
}

// A full block with users, or with a descendant that has some, cannot be evicted. A sequence holds
// every block of its chain, so the loops end at once; they climb only from a block that is pinned
// while nobody holds it.
void PrefixCache::BecameBusy(KvGroup group, int node) {
  if (group == KvGroup::kWindow) {
    if (window_queue_.contains(node)) window_queue_.Remove(node);
    window_queue_.AddCached(nodes_[node].tenant, -1);
    return;
  }
  full_queue_.AddCached(nodes_[node].tenant, -1);
  while (nodes_[node].index >= 0 && nodes_[node].num_busy++ == 0) {
    --num_reclaimable_;
    if (full_queue_.contains(node)) full_queue_.Remove(node);
    if (HEARTH_MUTANT(16)) break;  // ancestors in the cache do not learn of it
    node = nodes_[node].parent;
  }
}

void PrefixCache::BecameIdle(KvGroup group, int node) {
  Node& n = nodes_[node];
  if (group == KvGroup::kWindow) {
    n.window_level = window_queue_.level();
    window_queue_.AddCached(n.tenant, 1);
    window_queue_.Add(node, n.tenant, WindowWorth(n));
    return;
  }
  full_queue_.AddCached(n.tenant, 1);
  if (!HEARTH_MUTANT(17)) n.level = full_queue_.level();  // 17: age counts from the first use
  while (nodes_[node].index >= 0 && --nodes_[node].num_busy == 0) {
    ++num_reclaimable_;
    QueueIfLeaf(node);
    if (HEARTH_MUTANT(16)) break;
    node = nodes_[node].parent;
  }
}

void PrefixCache::QueueIfLeaf(int node) {
  const Node& n = nodes_[node];
  if (n.num_busy > 0 || full_queue_.contains(node)) return;
  if (n.num_children > 0 && !HEARTH_MUTANT(8)) return;  // 8: chains may lose their middle
  full_queue_.Add(node, n.tenant, Worth(n));
}

// Takes a block off a node. Users keep it as their own; without any it is free.
void PrefixCache::Detach(KvGroup group, int node) {
  Node& n = nodes_[node];
  BlockId& id = group == KvGroup::kFull ? n.full : n.window;
  EvictionQueue& queue = group == KvGroup::kFull ? full_queue_ : window_queue_;
  if (!pool(group).in_use(id)) {
    if (queue.contains(node)) queue.Remove(node);
    queue.AddCached(n.tenant, -1);
    if (group == KvGroup::kFull) --num_reclaimable_;
  }
  pool(group).Forget(id);
  id = BlockId::kNone;
}

void PrefixCache::EvictFull(int node) {
  full_queue_.Evicted(node);
  Prune(RemoveNode(node));
}

void PrefixCache::EvictWindow(int node) {
  window_queue_.Evicted(node);
  Detach(KvGroup::kWindow, node);
  if (!has_full_) Prune(node);
}

bool PrefixCache::MakeRoom(KvGroup group, int count) {
  EvictionQueue& queue = group == KvGroup::kFull ? full_queue_ : window_queue_;
  while (pool(group).num_free() < count) {
    const auto node = queue.Next();
    if (!node) return false;
    group == KvGroup::kFull ? EvictFull(*node) : EvictWindow(*node);
  }
  return true;
}

void PrefixCache::DropAll() {
  while (const auto node = full_queue_.Next()) EvictFull(*node);
  while (const auto node = window_queue_.Next()) EvictWindow(*node);
}

}  // namespace hearth
