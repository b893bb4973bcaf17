// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_cache.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/mutant.h"
namespace hearth {
namespace {

// How many branches a miss report looks at. More would only polish a hint.
constexpr int kBranchesSeen = 64;

int SpanOf(const KvGroupLayout& window) {
  if (window.block_bytes == 0) return 0;
  HEARTH_CHECK(window.window > 0);
  // The token at position p sees from p - (window - 1) on.
  const int back = window.window - 1;
  return (back + kBlockTokens - 1) / kBlockTokens - (HEARTH_MUTANT(6) && back > 0);  // 6: too short
}

int BlocksOf(const KvGroupLayout& group) { return group.block_bytes > 0 ? group.num_blocks : 0; }

int Quota(const KvGroupLayout& group, double share) {
  return static_cast<int>(std::clamp(share, 0.0, 1.0) * BlocksOf(group));
}

}  // namespace

PrefixCache::PrefixCache(const KvLayout& layout, const KvPolicy& policy, BlockPool& full,
                         BlockPool& window)
    : policy_(policy),
      has_full_(layout.full.block_bytes > 0),
      has_window_(layout.window.block_bytes > 0),
      window_span_(SpanOf(layout.window)),
      every_blocks_(policy.window_every / kBlockTokens),
      full_(full),
      window_(window),
      full_queue_(Quota(layout.full, policy.tenant_share)),
      window_queue_(Quota(layout.window, policy.tenant_share)) {
  const int blocks = BlocksOf(has_full_ ? layout.full : layout.window);
  // With full layers every node has a full block. Without, the chain that leads to a window block
  // has nodes without blocks; 64 of them per window block is half a window of 128 in 8192 tokens.
  max_nodes_ = has_full_ ? int64_t{blocks} : int64_t{blocks} * 64 + 64;
  nodes_.reserve(static_cast<size_t>(blocks) + 1);
  buckets_.assign(std::bit_ceil(static_cast<size_t>(std::max(blocks, 16))), -1);
  evicted_.resize(buckets_.size());
}

BlockKey PrefixCache::KeyOf(uint64_t salt, const BlockKey& parent,
                            std::span<const Token> tokens) const {
  // 18: keys do not depend on what came before.
  BlockKey key =
      ChainKey({policy_.key_seed, salt}, HEARTH_MUTANT(18) ? BlockKey() : parent, tokens);
  if (policy_.key_bits < 128) {
    key.hi = 0;
    if (policy_.key_bits < 64) key.lo &= (uint64_t{1} << policy_.key_bits) - 1;
  }
  return key;
}

int PrefixCache::Lookup(const BlockKey& key) const {
  int node = buckets_[key.lo & (buckets_.size() - 1)];
  while (node >= 0 && nodes_[node].key != key) node = nodes_[node].next_in_bucket;
  return node;
}

int PrefixCache::Child(int parent, const BlockKey& key, std::span<const Token> tokens) const {
  const int node = Lookup(key);
  if (node < 0) return -1;
  const Node& found = nodes_[node];
  if (found.parent != parent && !HEARTH_MUTANT(4)) return -1;  // 4: only the block is compared
  const bool same = std::ranges::equal(found.tokens, tokens);
  return same || HEARTH_MUTANT(3) ? node : -1;  // 3: keys are believed
}

PrefixCache::Found PrefixCache::Find(uint64_t salt, std::span<const Token> tokens, int max_blocks,
                                     std::vector<BlockKey>& keys,
                                     std::vector<KvNode>& nodes) const {
  Found found;
  keys.clear();
  nodes.clear();
  const auto root = roots_.find(salt);
  int node = root == roots_.end() ? -1 : root->second;
  int window_run = 0;
  BlockKey key;
  for (int i = 0; i < max_blocks; ++i) {
    const auto block = tokens.subspan(static_cast<size_t>(i) * kBlockTokens, kBlockTokens);
    key = KeyOf(salt, key, block);
    const int child = node < 0 ? -1 : Child(node, key, block);
    if (child < 0) break;
    node = child;
    keys.push_back(key);
    nodes.push_back({node, nodes_[node].serial});
    window_run = nodes_[node].window == BlockId::kNone ? 0 : window_run + 1;
    const bool usable = window_run >= std::min(i + 1, window_span_);
    if (usable || HEARTH_MUTANT(5)) found.num_blocks = i + 1;  // 5: full blocks suffice
  }
  const int known = static_cast<int>(nodes.size());
  found.miss.position = found.num_blocks * kBlockTokens;
  if (found.num_blocks < max_blocks) {
    found.miss.why = found.num_blocks < known ? KvMiss::Why::kWindowMissing
                     : WasEvicted(key)        ? KvMiss::Why::kEvicted
                                              : KvMiss::Why::kNeverSeen;
    found.miss.branch_tokens =
        (known - found.num_blocks) * kBlockTokens +
        NearestBranch(node, tokens.subspan(static_cast<size_t>(known) * kBlockTokens));
  }
  keys.resize(found.num_blocks);
  nodes.resize(found.num_blocks);
  return found;
}

int PrefixCache::NearestBranch(int node, std::span<const Token> rest) const {
  int best = 0, seen = 0;
  for (int child = node < 0 ? -1 : nodes_[node].first_child; child >= 0 && seen < kBranchesSeen;
       child = nodes_[child].next_sibling, ++seen) {
    const auto& tokens = nodes_[child].tokens;
    const auto differ = std::ranges::mismatch(tokens, rest);
    best = std::max(best, static_cast<int>(differ.in1 - tokens.begin()));
  }
  return best;
}

bool PrefixCache::WasEvicted(const BlockKey& key) const {
  return evicted_[key.lo & (evicted_.size() - 1)] == key && key != BlockKey();
}

int PrefixCache::RootOf(uint64_t salt) {
  const auto found = roots_.find(salt);
  if (found != roots_.end()) return found->second;
  const int node = NewNode();
  nodes_[node].key.lo = salt;
  roots_[salt] = node;
  return node;
}

int PrefixCache::NewNode() {
  int node;
  if (free_nodes_.empty()) {
    node = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
  }
  nodes_[node].is_alive = true;
  return node;
}

void PrefixCache::FreeNode(int node) {
  const uint32_t serial = nodes_[node].serial + 1;  // whoever remembers the node finds it stale
  nodes_[node] = Node();
  nodes_[node].serial = serial;
  free_nodes_.push_back(node);
}

void PrefixCache::InsertKey(int node) {
  int& head = buckets_[nodes_[node].key.lo & (buckets_.size() - 1)];
  nodes_[node].next_in_bucket = head;
  head = node;
}

void PrefixCache::EraseKey(int node) {
  int* link = &buckets_[nodes_[node].key.lo & (buckets_.size() - 1)];
  while (*link != node) link = &nodes_[*link].next_in_bucket;
  *link = nodes_[node].next_in_bucket;
}

// A new node below `parent`, without blocks.
int PrefixCache::Make(int parent, const Offer& offer) {
  const int node = NewNode();
  Node& made = nodes_[node];
  Node& above = nodes_[parent];
  made.key = offer.key;
  std::ranges::copy(offer.tokens, made.tokens.begin());
  made.tenant = offer.domain.tenant;
  made.parent = parent;
  made.index = above.index + 1;
  made.next_sibling = above.first_child;
  if (above.first_child >= 0) nodes_[above.first_child].prev_sibling = node;
  above.first_child = node;
  ++above.num_children;
  const int until_next = every_blocks_ > 0 ? every_blocks_ - made.index % every_blocks_ : 0;
  const int kept = window_span_ - HEARTH_MUTANT(19);  // 19: one block too few
  if (every_blocks_ > 0 && until_next <= kept) {
    made.keep = KeepClass::kEvery;
  }
  InsertKey(node);
  ++num_nodes_;
  return node;
}

KvNode PrefixCache::Publish(const Offer& offer) {
  HEARTH_CHECK(offer.parent.index < 0 || alive(offer.parent));
  HEARTH_CHECK(!has_full_ || offer.full != BlockId::kNone);
  const bool first = offer.parent.index < 0;
  while (num_nodes_ >= max_nodes_ && window_queue_.size() > 0) EvictWindow(*window_queue_.Next());
  if (!first && !alive(offer.parent)) return KvNode();
  const int parent = first ? RootOf(offer.domain.salt) : offer.parent.index;
  int node = Child(parent, offer.key, offer.tokens);
  if (node < 0 && (Lookup(offer.key) >= 0 || num_nodes_ >= max_nodes_)) {
    Prune(parent);
    return KvNode();
  }
  if (node < 0) {
    node = Make(parent, offer);
    // Where two chains part, others will: the end of a shared preamble is such a place.
    if (nodes_[parent].num_children == 2 && nodes_[parent].index >= 0) {
      KeepCut({parent, nodes_[parent].serial});
    }
    if (full_queue_.contains(parent)) full_queue_.Remove(parent);
  }
  const bool lacks_full = nodes_[node].full == BlockId::kNone;
  // 14: the newcomer replaces the older block.
  if (has_full_ && (lacks_full || HEARTH_MUTANT(14))) Attach(KvGroup::kFull, node, offer.full);
  if (offer.window != BlockId::kNone && window_.node(offer.window) == BlockPool::kNoNode &&
      nodes_[node].window == BlockId::kNone) {
    Attach(KvGroup::kWindow, node, offer.window);
  }
  return {node, nodes_[node].serial};
}

void PrefixCache::Attach(KvGroup group, int node, BlockId id) {
  (group == KvGroup::kFull ? nodes_[node].full : nodes_[node].window) = id;
  pool(group).Keep(id, node);
  HEARTH_CHECK(pool(group).in_use(id));  // whoever publishes a block holds it
  if (group == KvGroup::kFull) {
    ++num_reclaimable_;  // until BecameBusy counts its user
    full_queue_.AddCached(nodes_[node].tenant, 1);
  } else {
    window_queue_.AddCached(nodes_[node].tenant, 1);
  }
  BecameBusy(group, node);
}

// Unlinks a node without children and gives its blocks to whoever holds them, or back. Returns the
// parent, which may have lost its last child.
int PrefixCache::RemoveNode(int node) {
  HEARTH_CHECK(nodes_[node].num_children == 0);
  // 13: the window block of an evicted node stays behind.
  if (nodes_[node].window != BlockId::kNone && !HEARTH_MUTANT(13)) Detach(KvGroup::kWindow, node);
  if (nodes_[node].full != BlockId::kNone) Detach(KvGroup::kFull, node);
  const Node& gone = nodes_[node];
  const int parent = gone.parent;
  if (gone.prev_sibling >= 0) {
    nodes_[gone.prev_sibling].next_sibling = gone.next_sibling;
  } else {
    nodes_[parent].first_child = gone.next_sibling;
  }
  if (gone.next_sibling >= 0) nodes_[gone.next_sibling].prev_sibling = gone.prev_sibling;
  --nodes_[parent].num_children;
  evicted_[gone.key.lo & (evicted_.size() - 1)] = gone.key;
  EraseKey(node);
  FreeNode(node);
  --num_nodes_;
  return parent;
}

// What lost its last child: a root goes, and a node that has no block left; others become leaves.
void PrefixCache::Prune(int node) {
  while (nodes_[node].num_children == 0) {
    if (nodes_[node].index < 0) {
      roots_.erase(nodes_[node].key.lo);
      FreeNode(node);
      return;
    }
    if (has_full_) {
      QueueIfLeaf(node);
      return;
    }
    if (nodes_[node].window != BlockId::kNone) return;
    node = RemoveNode(node);
  }
}

}  // namespace hearth
