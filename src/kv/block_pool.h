// SPDX-License-Identifier: Apache-2.0
// The blocks of one group: which are free, how many sequences hold each, which ones the prefix
// cache keeps after the last of them left.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
namespace hearth {

struct KvCounts {
  int total = 0, free = 0, held = 0, cached = 0, pinned = 0;  // the last four add up to the first
};

// Every block is in one state: free; held by one sequence or more; cached, when no sequence holds
// it but the cache keeps it; pinned, when only a transfer under way needs it.
// Thread: engine only.
class BlockPool {
 public:
  static constexpr int kNoNode = -1;

  explicit BlockPool(int num_blocks);
  // A free block, now held once. Running dry is an ordinary shortage.
  std::optional<BlockId> Take();
  void Share(BlockId id);    // one more sequence holds it
  void Release(BlockId id);  // one fewer
  void Pin(BlockId id);      // its bytes must stay while a transfer runs
  void Unpin(BlockId id);
  void Keep(BlockId id, int node);  // the cache's `node` names it
  void Forget(BlockId id);          // the cache lets go of it

  bool in_use(BlockId id) const { return at(id).holders + at(id).pins > 0; }
  // Nobody else reads it, now or later: its one holder may write.
  bool is_private(BlockId id) const { return is_sole(id) && at(id).node == kNoNode; }
  // One sequence's release would make it free or cached.
  bool is_sole(BlockId id) const { return at(id).holders == 1 && at(id).pins == 0; }
  int holders(BlockId id) const { return at(id).holders; }
  int node(BlockId id) const { return at(id).node; }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_kept() const { return num_kept_; }  // by the cache, held or not
  int64_t num_references() const { return num_references_; }
  KvCounts counts() const { return counts_; }
  // Counts everything anew and compares.
  Status SelfCheck() const;

 private:
  struct Block {
    int holders = 0;
    int pins = 0;
    int node = kNoNode;
  };
  const Block& at(BlockId id) const { return blocks_[static_cast<size_t>(id)]; }
  Block& Used(BlockId id);
  int* Bucket(const Block& block);
  template <class Change>
  void Apply(BlockId id, Change change);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // a stack: the block used last is the warmest
  KvCounts counts_;
  int64_t num_references_ = 0;
  int num_kept_ = 0;
};

}  // namespace hearth
