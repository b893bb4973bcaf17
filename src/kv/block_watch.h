// SPDX-License-Identifier: Apache-2.0
// Whoever wants to know which blocks a cache has, as they come and go: routers that send a request
// to the replica which has its prompt. Declared here, implemented outside the core.
#pragma once
#include <functional>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "kv/block_key.h"
#include "kv/layout.h"
namespace hearth {

struct WatchedBlock {
  int group = 0;
  BlockKey key;
  BlockKey parent;                // all zero: the first block of its chain
  std::span<const Token> tokens;  // of this block alone; gone when the call returns
};

// Thread: engine only. No call waits for anything but a lock that is held for moments.
class BlockWatch {
 public:
  virtual ~BlockWatch() = default;

  // Before the first block, and with a null `wake` before the engine goes. `wake` makes the engine
  // end another step soon; called from any thread.
  virtual void Connect(const KvLayout& layout, std::function<void()> wake) = 0;

  // A block can be used again from `place`: empty for the backend's memory, else the name of a
  // tier's part. What tiers have is a guess: they forget without saying so.
  virtual void OnStored(std::string_view place, const WatchedBlock& block) = 0;
  virtual void OnRemoved(std::string_view place, int group, const BlockKey& key) = 0;

  // A step is over. True: something was lost on the way, and all that is in memory must be told
  // again: BeginAll, then each block, parents first, then EndStep once more.
  virtual bool EndStep() = 0;
  virtual void BeginAll() = 0;
};

}  // namespace hearth
