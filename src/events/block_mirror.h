// SPDX-License-Identifier: Apache-2.0
// What subscribers know: every block that was told and not taken back. Whoever comes late is told
// this instead of the whole history.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "events/block_event.h"
namespace hearth {

// Thread: one.
class BlockMirror {
 public:
  // Both say whether that was new.
  bool Store(const BlockEvent& event, std::span<const Token> tokens);
  bool Remove(const BlockEvent& event);
  void Clear(BlockPlace place);
  // All blocks, each after those that were told before it: parents first.
  BlockEvents All() const;
  size_t size() const { return blocks_.size(); }

 private:
  struct Id {
    BlockKey key;
    int group = 0;
    BlockPlace place = BlockPlace::kMemory;
    bool operator==(const Id&) const = default;
  };
  struct Hash {
    size_t operator()(const Id& id) const {  // keys are hashes already
      return static_cast<size_t>(id.key.lo ^ static_cast<uint64_t>(id.group) << 56 ^
                                 static_cast<uint64_t>(id.place) << 48);
    }
  };
  struct Block {
    uint64_t number = 0;  // grows: the order in which they came
    BlockKey parent;
    std::vector<Token> tokens;
  };
  static Id IdOf(const BlockEvent& event) { return {event.key, event.group, event.place}; }

  std::unordered_map<Id, Block, Hash> blocks_;
  uint64_t next_number_ = 0;
};

}  // namespace hearth
