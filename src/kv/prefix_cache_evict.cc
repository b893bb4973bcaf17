// SPDX-License-Identifier: Apache-2.0
// The prefix cache's other half: who uses a block, and which one goes when room is needed.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "kv/prefix_cache.h"
namespace hearth {
namespace {

// Turnovers of the pool that unused window blocks survive, by class. What is lost with a checkpoint
// is lost in every later turn of a conversation; what is lost with a multiple of `window_every`
// only when somebody branches there. Plain ones go as soon as room is needed.
constexpr double kEveryWeight = 1, kCheckpointWeight = 4;
// What a block is worth when a tier has it, beside one that must be computed again: a fetch takes a
// tenth of that or less where a tier is of use, but the tier may have lost it.
constexpr double kBelowShare = 0.5;
constexpr uint16_t kMaxHits = 0xffff;
constexpr size_t kMaxIdle = 65'536;

// A block that was reused before will be again; each doubling of its hits adds its cost once more.
double Popularity(uint16_t hits) { return 1.0 + std::bit_width(hits); }

}  // namespace

// Full blocks are worth what computing them again costs. Window blocks are worth it where somebody
// will start again, and nothing elsewhere.
double PrefixCache::Worth(int group, int node) const {
  const Slot& of = slot(group, node);
  const double weight = is_full(group)                      ? 1
                        : of.keep == KeepClass::kPlain      ? 0
                        : of.keep == KeepClass::kCheckpoint ? kCheckpointWeight
                                                            : kEveryWeight;
  const double position = static_cast<double>(block_tokens_) * nodes_[node].index;
  const double cost = 1.0 + position / policy_.attention_knee;
  return of.level + weight * cost * Popularity(of.hits) * (of.is_below ? kBelowShare : 1);
}

void PrefixCache::Touch(int group, const KvNode& node) {
  uint16_t& hits = slot(group, node.index).hits;
  if (hits < kMaxHits) ++hits;
}

void PrefixCache::KeepCheckpoint(const KvNode& node) {
  for (int group = has_full_; group < num_groups(); ++group) {
    int at = node.index;
    for (int i = 0; i < span(group) && nodes_[at].index >= 0; ++i, at = nodes_[at].parent) {
      Slot& kept = slot(group, at);
      kept.keep = KeepClass::kCheckpoint;
      if (!queue(group).contains(at)) continue;
      queue(group).Remove(at);
      kept.level = queue(group).level();
      queue(group).Add(at, nodes_[at].tenant, Worth(group, at));
      if (policy_.offers_idle) OfferIdle(group, at);  // nobody wanted it when it became idle
    }
  }
}

void PrefixCache::Hold(int group, BlockId id) {
  const bool was_idle = !pool(group).in_use(id);
  pool(group).Share(id);
  if (was_idle) BecameBusy(group, pool(group).node(id));
}

void PrefixCache::Pin(int group, BlockId id) {
  const bool was_idle = !pool(group).in_use(id);
  pool(group).Pin(id);
  if (was_idle) BecameBusy(group, pool(group).node(id));
}

void PrefixCache::Drop(int group, BlockId id) {
  const int node = pool(group).node(id);
  pool(group).Release(id);
  if (node != BlockPool::kNoNode && !pool(group).in_use(id)) BecameIdle(group, node);
}

void PrefixCache::Unpin(int group, BlockId id) {
  const int node = pool(group).node(id);
  pool(group).Unpin(id);
  if (node != BlockPool::kNoNode && !pool(group).in_use(id)) BecameIdle(group, node);
}

// A full block with users, or with a descendant that has some, cannot be evicted. A sequence holds
// every block of its chain, so the loops end at once; they climb only from a block that is pinned
// while nobody holds it.
void PrefixCache::BecameBusy(int group, int node) {
  queue(group).AddCached(nodes_[node].tenant, -1);
  if (!is_full(group)) {
    if (queue(group).contains(node)) queue(group).Remove(node);
    return;
  }
  while (nodes_[node].index >= 0 && nodes_[node].num_busy++ == 0) {
    --num_reclaimable_;
    if (queue(group).contains(node)) queue(group).Remove(node);
    node = nodes_[node].parent;
  }
}

// Blocks of a window that nobody will come back to are not worth a tier's room.
void PrefixCache::OfferIdle(int group, int node) {
  const Slot& of = slot(group, node);
  if (of.was_offered || (!is_full(group) && of.keep == KeepClass::kPlain)) return;
  const bool goes_on = !idle_.empty() && idle_.back().group == group &&
                       alive(idle_.back().nodes.back()) &&
                       nodes_[idle_.back().nodes.back().index].parent == node;
  if (!goes_on) idle_.push_back({group, {}});
  idle_.back().nodes.push_back({node, nodes_[node].serial});
  // Those that waited longest are the likeliest to be evicted already.
  if (++num_idle_ > kMaxIdle && idle_.size() > 1) {
    num_idle_ -= idle_.front().nodes.size();
    idle_.pop_front();
  }
}

std::optional<KvSpace::IdleBlock> PrefixCache::TakeIdle() {
  while (!idle_.empty()) {
    const int group = idle_.front().group;
    const KvNode node = idle_.front().nodes.back();
    idle_.front().nodes.pop_back();
    --num_idle_;
    if (idle_.front().nodes.empty()) idle_.pop_front();
    if (!alive(node)) continue;
    Slot& of = slot(group, node.index);
    if (of.id == BlockId::kNone || of.was_offered) continue;
    of.was_offered = true;
    Pin(group, of.id);
    const auto tokens = TokensOf(node.index);
    const Node& idle = nodes_[node.index];
    return KvSpace::IdleBlock{group,       of.id,
                              idle.key,    ParentKey(node.index),
                              idle.tenant, std::vector<Token>(tokens.begin(), tokens.end())};
  }
  return std::nullopt;
}

void PrefixCache::MarkBelow(int group, const BlockKey& key) {
  const int node = Lookup(key);
  if (node < 0) return;
  Slot& of = slot(group, node);
  if (of.id == BlockId::kNone || of.is_below) return;
  of.is_below = true;
  if (!queue(group).contains(node)) return;
  queue(group).Remove(node);
  queue(group).Add(node, nodes_[node].tenant, Worth(group, node));
}

void PrefixCache::BecameIdle(int group, int node) {
  if (policy_.offers_idle) OfferIdle(group, node);
  queue(group).AddCached(nodes_[node].tenant, 1);
  slot(group, node).level = queue(group).level();
  if (!is_full(group)) {
    queue(group).Add(node, nodes_[node].tenant, Worth(group, node));
    return;
  }
  while (nodes_[node].index >= 0 && --nodes_[node].num_busy == 0) {
    ++num_reclaimable_;
    QueueIfLeaf(node);
    node = nodes_[node].parent;
  }
}

void PrefixCache::QueueIfLeaf(int node) {
  const Node& n = nodes_[node];
  if (n.num_busy > 0 || queue(0).contains(node)) return;
  if (n.num_children > 0) return;
  queue(0).Add(node, n.tenant, Worth(0, node));
}

// Takes a block off a node. Users keep it as their own; without any it is free.
void PrefixCache::Detach(int group, int node) {
  BlockId& id = slot(group, node).id;
  if (!pool(group).in_use(id)) {
    if (queue(group).contains(node)) queue(group).Remove(node);
    queue(group).AddCached(nodes_[node].tenant, -1);
    if (is_full(group)) --num_reclaimable_;
  }
  pool(group).Forget(id);
  id = BlockId::kNone;
  if (policy_.watch != nullptr) policy_.watch->OnRemoved("", group, nodes_[node].key);
}

void PrefixCache::Evict(int group, int node) {
  queue(group).Evicted(node);
  if (is_full(group)) {
    Prune(RemoveNode(node));
    return;
  }
  Detach(group, node);
  if (!has_full_) Prune(node);
}

bool PrefixCache::MakeRoom(int group, int count) {
  while (pool(group).num_free() < count) {
    const auto node = queue(group).Next();
    if (!node) return false;
    Evict(group, *node);
  }
  return true;
}

void PrefixCache::TellAll(BlockWatch& watch) const {
  std::vector<int> waiting;
  for (const auto& [salt, root] : roots_) waiting.push_back(root);
  while (!waiting.empty()) {
    const int node = waiting.back();
    waiting.pop_back();
    for (int group = 0; nodes_[node].index >= 0 && group < num_groups(); ++group) {
      if (slot(group, node).id != BlockId::kNone) watch.OnStored("", Watched(group, node));
    }
    for (int child = nodes_[node].first_child; child >= 0; child = nodes_[child].next_sibling) {
      waiting.push_back(child);
    }
  }
}

void PrefixCache::DropAll() {
  for (int group = 0; group < num_groups(); ++group) {
    while (const auto node = queue(group).Next()) Evict(group, *node);
  }
}

}  // namespace hearth
