// SPDX-License-Identifier: Apache-2.0
// Finds KV blocks that some earlier sequence already filled with the same tokens, and decides which
// of them go when room is needed. Counts blocks through the pools; never touches their bytes.
#pragma once
#include <array>
#include <cstdint>
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

// A tree of nodes, one per published block of 16 tokens, with a root per salt. A node carries the
// block of either group that holds its tokens.
//
// Whole prefixes are compared, not only blocks: a node is accepted for block i only when its parent
// is the very node accepted for block i - 1 and its 16 tokens are equal. A node outlives none of
// its ancestors, so by induction the whole chain and the salt are equal, whatever the keys do.
//
// Full blocks are evicted leaves first, so a chain never has holes. Window blocks may go alone. A
// node dies with its full block, or, in a model without full layers, when it has neither a window
// block nor children.
// Thread: engine only.
class PrefixCache {
 public:
  PrefixCache(const KvLayout& layout, const KvPolicy& policy, BlockPool& full, BlockPool& window);

  struct Found {
    int num_blocks = 0;  // that can be reused: all full blocks, and the last window's
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
    BlockId full = BlockId::kNone, window = BlockId::kNone;
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
  BlockId block(KvGroup group, const KvNode& node) const {
    return group == KvGroup::kFull ? nodes_[node.index].full : nodes_[node.index].window;
  }
  // A hit on `node`, with its window block or without.
  void Touch(const KvNode& node, bool with_window);
  // Marks the window blocks before the boundary after `node` as worth keeping.
  void KeepCut(const KvNode& node);

  // One more or one fewer user of a block, cached or not.
  void Hold(KvGroup group, BlockId id);
  void Drop(KvGroup group, BlockId id);
  void Pin(KvGroup group, BlockId id);
  void Unpin(KvGroup group, BlockId id);

  // Cached blocks that MakeRoom can free.
  int reclaimable(KvGroup group) const {
    return group == KvGroup::kFull ? num_reclaimable_ : window_queue_.size();
  }
  // Evicts until the group has `count` free blocks or nothing is left to evict.
  bool MakeRoom(KvGroup group, int count);
  void DropAll();

  // Window blocks that the token after a block boundary sees, at most.
  int window_span() const { return window_span_; }
  Status SelfCheck() const;

 private:
  // How long a window block is kept: those of a cut longer than those before a multiple of
  // `window_every`, and those longer than the rest.
  enum class KeepClass : uint8_t { kPlain, kEvery, kCut };
  struct Node {
    BlockKey key;  // of a root: lo is the salt
    std::array<Token, kBlockTokens> tokens;
    int32_t parent = -1, first_child = -1, next_sibling = -1, prev_sibling = -1;
    int32_t next_in_bucket = -1;
    int32_t num_children = 0;
    int32_t index = -1;    // holds positions [16 index, 16 index + 16); -1 for a root
    int32_t num_busy = 0;  // 1 if its full block is in use, plus its children with num_busy > 0
    BlockId full = BlockId::kNone, window = BlockId::kNone;
    uint32_t serial = 0, tenant = 0;
    uint16_t hits = 0, window_hits = 0;
    KeepClass keep = KeepClass::kPlain;
    bool is_alive = false;
    double level = 0, window_level = 0;  // of the queue, when last used
  };

  int Lookup(const BlockKey& key) const;
  int Child(int parent, const BlockKey& key, std::span<const Token> tokens) const;
  int RootOf(uint64_t salt);
  int NewNode();
  void FreeNode(int node);
  void InsertKey(int node);
  void EraseKey(int node);
  int Make(int parent, const Offer& offer);
  void Attach(KvGroup group, int node, BlockId id);
  void Detach(KvGroup group, int node);
  int RemoveNode(int node);
  void Prune(int node);

  BlockPool& pool(KvGroup group) { return group == KvGroup::kFull ? full_ : window_; }
  void BecameBusy(KvGroup group, int node);
  void BecameIdle(KvGroup group, int node);
  void QueueIfLeaf(int node);
  void EvictFull(int node);
  void EvictWindow(int node);
  double Worth(const Node& node) const;
  double WindowWorth(const Node& node) const;
  int LastUsedChild(int node, std::span<const Token> beginning) const;
  int NearestBranch(int node, std::span<const Token> rest) const;

  bool WasEvicted(const BlockKey& key) const;
  Status CheckNode(int index) const;
  Status CheckQueues(int index) const;

  KvPolicy policy_;
  bool has_full_, has_window_;
  int window_span_;  // blocks
  int every_blocks_;
  BlockPool &full_, &window_;
  EvictionQueue full_queue_, window_queue_;
  std::vector<Node> nodes_;
  std::vector<int> free_nodes_;
  std::vector<int> buckets_;  // heads of chains through next_in_bucket; a power of two
  std::unordered_map<uint64_t, int> roots_;  // by salt
  int64_t num_nodes_ = 0;                    // alive, roots excluded
  int64_t max_nodes_;
  int num_reclaimable_ = 0;
  std::vector<BlockKey> evicted_;  // one key per slot, the latest: enough to say "was there once"
};

}  // namespace hearth
