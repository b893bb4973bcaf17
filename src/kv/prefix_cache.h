// SPDX-License-Identifier: Apache-2.0
// Finds KV blocks that some earlier sequence already filled with the same tokens, and decides which
// of them go when room is needed. Counts blocks through the pools; never touches their bytes.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/block_key.h"
#include "kv/block_pool.h"
#include "kv/eviction_queue.h"
#include "kv/kv_space.h"
#include "kv/layout.h"
namespace hearth {

// A tree of nodes, one per published block of tokens, with a root per salt. A node carries the
// block of each group that holds its tokens.
//
// Whole prefixes are compared, not only blocks: a node is accepted for block i only when its parent
// is the very node accepted for block i - 1 and its tokens are equal. A node outlives none of
// its ancestors, so by induction the whole chain and the salt are equal, whatever the keys do.
//
// Full blocks (of a group that sees everything) are evicted leaves first, so a chain never has
// holes. Blocks of a group with a window may go alone. A node dies with its full block, or, in a
// model without full layers, when it has neither a block nor children. Thread: engine only.
class PrefixCache {
 public:
  // `pools` has one for each group and outlives the cache.
  PrefixCache(const KvLayout& layout, const KvPolicy& policy, std::span<BlockPool> pools);

  struct Found {
    int num_blocks = 0;  // that can be reused: all full blocks, and the last of each window
    KvMiss miss;
  };
  // Fills `keys` and `nodes` with what can be reused of at most `max_blocks`; holds nothing.
  Found Find(uint64_t salt, std::span<const Token> tokens, int max_blocks,
             std::vector<BlockKey>& keys, std::vector<KvNode>& nodes) const;
  BlockKey KeyOf(uint64_t salt, const BlockKey& parent, std::span<const Token> tokens) const;

  struct Offer {
    KvNode parent;  // index -1 for the first block
    BlockKey key;
    std::span<const Token> tokens;
    KvDomain domain;
    std::span<const BlockTable> tables;  // the block of each group is at `entry`
    size_t entry = 0;
  };
  // The node of one more block of a chain. A known node keeps the block it has, and takes the
  // offered one where it has none. Index -1 when the key already names another chain's block.
  KvNode Publish(const Offer& offer);

  // Appends what the tree holds after `last` (index -1: from the beginning) and `tail`, at most
  // `count` tokens, going where it was used last.
  void Continue(uint64_t salt, const KvNode& last, std::span<const Token> tail, int count,
                std::vector<Token>& out) const;

  bool alive(const KvNode& node) const {
    return node.index >= 0 && nodes_[node.index].serial == node.serial;
  }
  BlockId block(int group, const KvNode& node) const { return slot(group, node.index).id; }
  // A hit on the block that `node` has in the group.
  void Touch(int group, const KvNode& node);
  // Marks the window blocks before the boundary after `node` as worth keeping.
  void KeepCheckpoint(const KvNode& node);

  // One more or one fewer user of a block, cached or not.
  void Hold(int group, BlockId id);
  void Drop(int group, BlockId id);
  void Pin(int group, BlockId id);
  void Unpin(int group, BlockId id);

  // As KvSpace's.
  std::optional<KvSpace::IdleBlock> TakeIdle();
  bool has_idle() const { return !idle_.empty(); }

  void MarkBelow(int group, const BlockKey& key);

  // Cached blocks that MakeRoom can free.
  int reclaimable(int group) const {
    return is_full(group) ? num_reclaimable_ : queue(group).size();
  }
  // Evicts until the group has `count` free blocks or nothing is left to evict.
  bool MakeRoom(int group, int count);
  void DropAll();
  void TellAll(BlockWatch& watch) const;

  // Blocks of the group that the token after a block boundary sees, at most.
  int span(int group) const { return spans_[static_cast<size_t>(group)]; }
  Status SelfCheck() const;

 private:
  // How long a window block is kept: those of a checkpoint longer than those before a multiple of
  // `window_every`, and those longer than the rest.
  enum class KeepClass : uint8_t { kPlain, kEvery, kCheckpoint };
  struct Node {
    BlockKey key;  // of a root: lo is the salt
    int32_t parent = -1, first_child = -1, next_sibling = -1, prev_sibling = -1;
    int32_t next_in_bucket = -1;
    int32_t num_children = 0;
    int32_t index = -1;    // which block of its chain; -1 for a root
    int32_t num_busy = 0;  // 1 if its full block is in use, plus its children with num_busy > 0
    uint32_t serial = 0, tenant = 0;
    bool is_alive = false;
  };
  // What a node has in one group.
  struct Slot {
    BlockId id = BlockId::kNone;
    uint16_t hits = 0;
    KeepClass keep = KeepClass::kPlain;  // of a group with a window
    bool was_offered = false;            // to a tier
    bool is_below = false;               // a tier has it
    double level = 0;                    // of the queue, when last used
  };

  int Lookup(const BlockKey& key) const;
  int Child(int parent, const BlockKey& key, std::span<const Token> tokens) const;
  int RootOf(uint64_t salt);
  int NewNode();
  void FreeNode(int node);
  void InsertKey(int node);
  void EraseKey(int node);
  int Make(int parent, const Offer& offer);
  void Attach(int group, int node, BlockId id);
  void Detach(int group, int node);
  int RemoveNode(int node);
  void Prune(int node);

  int num_groups() const { return static_cast<int>(spans_.size()); }
  bool is_full(int group) const { return group == 0 && has_full_; }
  BlockPool& pool(int group) { return pools_[static_cast<size_t>(group)]; }
  const BlockPool& pool(int group) const { return pools_[static_cast<size_t>(group)]; }
  EvictionQueue& queue(int group) { return queues_[static_cast<size_t>(group)]; }
  const EvictionQueue& queue(int group) const { return queues_[static_cast<size_t>(group)]; }
  size_t SlotIndex(int group, int node) const {
    return static_cast<size_t>(node) * spans_.size() + static_cast<size_t>(group);
  }
  Slot& slot(int group, int node) { return slots_[SlotIndex(group, node)]; }
  const Slot& slot(int group, int node) const { return slots_[SlotIndex(group, node)]; }
  std::span<const Token> TokensOf(int node) const {
    return std::span(tokens_).subspan(static_cast<size_t>(node) * block_tokens_, block_tokens_);
  }
  bool HasBlocks(int node) const;
  BlockKey ParentKey(int node) const;
  WatchedBlock Watched(int group, int node) const {
    return {group, nodes_[node].key, ParentKey(node), TokensOf(node)};
  }

  void BecameBusy(int group, int node);
  void BecameIdle(int group, int node);
  void QueueIfLeaf(int node);
  void Evict(int group, int node);
  void EvictForNode();
  double Worth(int group, int node) const;
  int LastUsedChild(int node, std::span<const Token> beginning) const;
  int NearestBranch(int node, std::span<const Token> rest) const;

  void OfferIdle(int group, int node);
  bool WasEvicted(const BlockKey& key) const;
  Status CheckNode(int index) const;
  Status CheckBlocks(int index) const;
  Status CheckQueues(int index) const;
  Status CheckCounts(int group) const;

  KvPolicy policy_;
  bool has_full_;
  size_t block_tokens_;
  int every_blocks_;
  std::vector<int> spans_;  // by group, in blocks
  std::span<BlockPool> pools_;
  std::vector<EvictionQueue> queues_;
  std::vector<Node> nodes_;
  std::vector<Slot> slots_;        // of each node one per group
  std::vector<Token> tokens_;      // of each node a block
  mutable std::vector<int> runs_;  // Find's, kept for its memory
  std::vector<int> free_nodes_;
  std::vector<int> buckets_;  // heads of chains through next_in_bucket; a power of two
  std::unordered_map<uint64_t, int> roots_;  // by salt
  int64_t num_nodes_ = 0;                    // alive, roots excluded
  int64_t max_nodes_;
  int num_reclaimable_ = 0;
  // Blocks that became idle and were not offered to a tier yet. A sequence lets go of its last
  // block first, but a chain is of use only from its beginning: each run is taken from its end.
  struct IdleRun {
    int group;
    std::vector<KvNode> nodes;
  };
  std::deque<IdleRun> idle_;
  size_t num_idle_ = 0;            // in all runs
  std::vector<BlockKey> evicted_;  // one key per slot, the latest: enough to say "was there once"
};

}  // namespace hearth
