// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include "base/check.h"
namespace hearth {

BlockPool::BlockPool(int num_blocks) : blocks_(static_cast<size_t>(num_blocks)) {
  free_.reserve(blocks_.size());
  for (int i = num_blocks - 1; i >= 0; --i) free_.push_back(BlockId{i});
  counts_.total = counts_.free = num_blocks;
}

int* BlockPool::Bucket(const Block& block) {
  if (block.holders > 0) return &counts_.held;
  if (block.pins > 0) return &counts_.pinned;
  if (block.node != kNoNode) return &counts_.cached;
  return &counts_.free;
}

BlockPool::Block& BlockPool::Used(BlockId id) {
  HEARTH_CHECK(static_cast<size_t>(id) < blocks_.size());
  return blocks_[static_cast<size_t>(id)];
}

// Changes a block and moves it to the state that follows.
template <class Change>
void BlockPool::Apply(BlockId id, Change change) {
  Block& block = Used(id);
  int* const before = Bucket(block);
  HEARTH_CHECK(before != &counts_.free);
  change(block);
  int* const after = Bucket(block);
  --*before;
  ++*after;
  if (after == &counts_.free) free_.push_back(id);
}

std::optional<BlockId> BlockPool::Take() {
  if (free_.empty()) return std::nullopt;
  const BlockId id = free_.back();
  free_.pop_back();
  Block& block = Used(id);
  HEARTH_CHECK(block.holders == 0 && block.pins == 0 && block.node == kNoNode);
  block.holders = 1;
  ++num_references_;
  --counts_.free;
  ++counts_.held;
  return id;
}

void BlockPool::Share(BlockId id) {
  Apply(id, [&](Block& block) {
    ++block.holders;
    ++num_references_;
  });
}

void BlockPool::Release(BlockId id) {
  Apply(id, [&](Block& block) {
    HEARTH_CHECK(block.holders > 0);
    --block.holders;
    --num_references_;
  });
}

void BlockPool::Pin(BlockId id) {
  Apply(id, [](Block& block) { ++block.pins; });
}

void BlockPool::Unpin(BlockId id) {
  Apply(id, [](Block& block) {
    HEARTH_CHECK(block.pins > 0);
    --block.pins;
  });
}

void BlockPool::Keep(BlockId id, int node) {
  Apply(id, [&](Block& block) {
    HEARTH_CHECK(block.node == kNoNode && node != kNoNode);
    block.node = node;
    ++num_kept_;
  });
}

void BlockPool::Forget(BlockId id) {
  Apply(id, [&](Block& block) {
    HEARTH_CHECK(block.node != kNoNode);
    block.node = kNoNode;
    --num_kept_;
  });
}

Status BlockPool::SelfCheck() const {
  std::vector<bool> is_free(blocks_.size());
  for (const BlockId id : free_) {
    const auto i = static_cast<size_t>(id);
    if (i >= blocks_.size() || is_free[i]) {
      return Error(Code::kCorrupt, "block %d is in the free list twice", static_cast<int>(id));
    }
    is_free[i] = true;
  }
  KvCounts seen;
  int64_t references = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    references += block.holders;
    const bool used = block.holders > 0 || block.pins > 0 || block.node != kNoNode;
    if (used == is_free[i]) {
      return Error(Code::kCorrupt, "block %zu: %d holders, %d pins, node %d, %s the free list", i,
                   block.holders, block.pins, block.node, is_free[i] ? "in" : "not in");
    }
    if (block.holders > 0) {
      ++seen.held;
    } else if (block.pins > 0) {
      ++seen.pinned;
    } else if (block.node != kNoNode) {
      ++seen.cached;
    } else {
      ++seen.free;
    }
  }
  const bool same = seen.free == counts_.free && seen.held == counts_.held &&
                    seen.cached == counts_.cached && seen.pinned == counts_.pinned;
  if (!same || references != num_references_ ||
      seen.free + seen.held + seen.cached + seen.pinned != counts_.total) {
    return Error(Code::kCorrupt,
                 "of %d blocks %d free, %d held, %d cached, %d pinned; the counters say %d, %d, %d,"
                 " %d",
                 counts_.total, seen.free, seen.held, seen.cached, seen.pinned, counts_.free,
                 counts_.held, counts_.cached, counts_.pinned);
  }
  return Status();
}

}  // namespace hearth
