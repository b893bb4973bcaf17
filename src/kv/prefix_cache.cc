// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <climits>

#include "base/check.h"
namespace hearth {
namespace {

// How many branches a miss report looks at. More would only polish a hint.
constexpr int kBranchesSeen = 64;

int SpanOf(const KvGroupLayout& group, int block_tokens) {
  if (group.window == 0) return INT_MAX;
  // The token at position p sees from p - (window - 1) on.
  const int back = group.window - 1;
  return (back + block_tokens - 1) / block_tokens;
}

int Quota(const KvGroupLayout& group, double share) {
  return static_cast<int>(std::clamp(share, 0.0, 1.0) * group.num_blocks);
}

}  // namespace

PrefixCache::PrefixCache(const KvLayout& layout, const KvPolicy& policy, std::span<BlockPool> pools)
    : policy_(policy),
      has_full_(layout.has_full()),
      block_tokens_(static_cast<size_t>(layout.block_tokens)),
      every_blocks_(policy.window_every / layout.block_tokens),
      pools_(pools) {
  int64_t blocks = 0;
  for (const KvGroupLayout& group : layout.groups) {
    spans_.push_back(SpanOf(group, layout.block_tokens));
    queues_.emplace_back(Quota(group, policy.tenant_share));
    blocks += group.num_blocks;
  }
  if (has_full_) blocks = layout.groups[0].num_blocks;
  // With full layers every node has a full block. Without, the chain that leads to a window block
  // has nodes without blocks; 64 of them per window block is half a window of 128 in 8192 tokens.
  max_nodes_ = has_full_ ? blocks : blocks * 64 + 64;
  nodes_.reserve(static_cast<size_t>(blocks) + 1);
  slots_.reserve((static_cast<size_t>(blocks) + 1) * spans_.size());
  tokens_.reserve((static_cast<size_t>(blocks) + 1) * block_tokens_);
  runs_.resize(spans_.size());
  buckets_.assign(std::bit_ceil(static_cast<size_t>(std::max<int64_t>(blocks, 16))), -1);
  evicted_.resize(buckets_.size());
}

BlockKey PrefixCache::KeyOf(uint64_t salt, const BlockKey& parent,
                            std::span<const Token> tokens) const {
  BlockKey key = ChainKey({policy_.key_seed, salt}, parent, tokens);
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
  if (found.parent != parent) return -1;
  const bool same = std::ranges::equal(TokensOf(node), tokens);
  return same ? node : -1;
}

PrefixCache::Found PrefixCache::Find(uint64_t salt, std::span<const Token> tokens, int max_blocks,
                                     std::vector<BlockKey>& keys,
                                     std::vector<KvNode>& nodes) const {
  Found found;
  keys.clear();
  nodes.clear();
  const auto root = roots_.find(salt);
  int node = root == roots_.end() ? -1 : root->second;
  std::ranges::fill(runs_, 0);
  BlockKey key;
  for (int i = 0; i < max_blocks; ++i) {
    const auto block = tokens.subspan(static_cast<size_t>(i) * block_tokens_, block_tokens_);
    key = KeyOf(salt, key, block);
    const int child = node < 0 ? -1 : Child(node, key, block);
    if (child < 0) break;
    node = child;
    keys.push_back(key);
    nodes.push_back({node, nodes_[node].serial});
    bool usable = true;
    for (int group = 0; group < num_groups(); ++group) {
      int& run = runs_[static_cast<size_t>(group)];
      run = slot(group, node).id == BlockId::kNone ? 0 : run + 1;
      usable = usable && run >= std::min(i + 1, span(group));
    }
    if (usable) found.num_blocks = i + 1;
  }
  const int known = static_cast<int>(nodes.size()), block_tokens = static_cast<int>(block_tokens_);
  found.miss.position = found.num_blocks * block_tokens;
  if (found.num_blocks < max_blocks) {
    found.miss.why = found.num_blocks < known ? KvMiss::Why::kWindowMissing
                     : WasEvicted(key)        ? KvMiss::Why::kEvicted
                                              : KvMiss::Why::kNeverSeen;
    found.miss.branch_tokens =
        (known - found.num_blocks) * block_tokens +
        NearestBranch(node, tokens.subspan(static_cast<size_t>(known) * block_tokens_));
  }
  keys.resize(found.num_blocks);
  nodes.resize(found.num_blocks);
  return found;
}

int PrefixCache::NearestBranch(int node, std::span<const Token> rest) const {
  int best = 0, seen = 0;
  for (int child = node < 0 ? -1 : nodes_[node].first_child; child >= 0 && seen < kBranchesSeen;
       child = nodes_[child].next_sibling, ++seen) {
    const auto tokens = TokensOf(child);
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
    slots_.resize(nodes_.size() * spans_.size());
    tokens_.resize(nodes_.size() * block_tokens_);
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
  for (int group = 0; group < num_groups(); ++group) slot(group, node) = Slot();
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
  std::ranges::copy(offer.tokens, &tokens_[static_cast<size_t>(node) * block_tokens_]);
  made.tenant = offer.domain.tenant;
  made.parent = parent;
  made.index = above.index + 1;
  made.next_sibling = above.first_child;
  if (above.first_child >= 0) nodes_[above.first_child].prev_sibling = node;
  above.first_child = node;
  ++above.num_children;
  const int until_next = every_blocks_ > 0 ? every_blocks_ - made.index % every_blocks_ : 0;
  for (int group = 0; group < num_groups(); ++group) {
    if (every_blocks_ > 0 && until_next <= span(group)) slot(group, node).keep = KeepClass::kEvery;
  }
  InsertKey(node);
  ++num_nodes_;
  return node;
}

KvNode PrefixCache::Publish(const Offer& offer) {
  HEARTH_CHECK(offer.parent.index < 0 || alive(offer.parent));
  HEARTH_CHECK(!has_full_ || offer.tables[0][offer.entry] != BlockId::kNone);
  const bool first = offer.parent.index < 0;
  if (num_nodes_ >= max_nodes_) EvictForNode();
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
      KeepCheckpoint({parent, nodes_[parent].serial});
    }
    if (has_full_ && queue(0).contains(parent)) queue(0).Remove(parent);
  }
  for (int group = 0; group < num_groups(); ++group) {
    const BlockId id = offer.tables[static_cast<size_t>(group)][offer.entry];
    const bool is_lacking = slot(group, node).id == BlockId::kNone;
    if (is_full(group)) {
      if (is_lacking) Attach(group, node, id);
    } else if (is_lacking && id != BlockId::kNone && pool(group).node(id) == BlockPool::kNoNode) {
      Attach(group, node, id);
    }
  }
  return {node, nodes_[node].serial};
}

// Without full layers, nodes without blocks are bounded: those of window blocks that go first go.
void PrefixCache::EvictForNode() {
  for (int group = has_full_; group < num_groups(); ++group) {
    while (num_nodes_ >= max_nodes_ && queue(group).size() > 0) Evict(group, *queue(group).Next());
  }
}

void PrefixCache::Attach(int group, int node, BlockId id) {
  slot(group, node).id = id;
  pool(group).Keep(id, node);
  HEARTH_CHECK(pool(group).in_use(id));    // whoever publishes a block holds it
  if (is_full(group)) ++num_reclaimable_;  // until BecameBusy counts its user
  queue(group).AddCached(nodes_[node].tenant, 1);
  BecameBusy(group, node);
  if (policy_.watch != nullptr) policy_.watch->OnStored("", Watched(group, node));
}

BlockKey PrefixCache::ParentKey(int node) const {
  const Node& parent = nodes_[nodes_[node].parent];
  return parent.index < 0 ? BlockKey() : parent.key;
}

bool PrefixCache::HasBlocks(int node) const {
  for (int group = 0; group < num_groups(); ++group) {
    if (slot(group, node).id != BlockId::kNone) return true;
  }
  return false;
}

// Unlinks a node without children and gives its blocks to whoever holds them, or back. Returns the
// parent, which may have lost its last child.
int PrefixCache::RemoveNode(int node) {
  HEARTH_CHECK(nodes_[node].num_children == 0);
  for (int group = num_groups() - 1; group >= 0; --group) {
    if (slot(group, node).id != BlockId::kNone) Detach(group, node);
  }
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
    if (HasBlocks(node)) return;
    node = RemoveNode(node);
  }
}

}  // namespace hearth
