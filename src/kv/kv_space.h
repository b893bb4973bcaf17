// SPDX-License-Identifier: Apache-2.0
// All KV blocks of the machine as the scheduler sees them: which sequence holds which, and which
// earlier work can be used again. Counts and names blocks; never touches the bytes inside.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/layout.h"
namespace hearth {

using BlockTable = std::vector<BlockId>;  // entry i holds positions [16 i, 16 i + 16)

// 128 bits that name a block by everything before it.
struct BlockKey {
  uint64_t hi = 0, lo = 0;
  bool operator==(const BlockKey&) const = default;
};

// Whose cached work a sequence may see. Sequences share blocks only within equal salts.
struct KvDomain {
  uint32_t tenant = 0;  // whose quota cached blocks count against
  uint64_t salt = 0;    // part of every key
};

// What one sequence holds. Made empty, filled by KvSpace; must be released before it goes.
struct KvHolding {
  BlockTable full, window;     // in `window`, blocks that no later token can see are kNone
  std::vector<BlockKey> keys;  // of the sequence's full blocks of tokens, as far as committed
  KvDomain domain;
};

// Why a prompt was not found further: for the client that wonders.
struct KvMiss {
  enum class Why : uint8_t {
    kNone,           // everything that could be reused was
    kNeverSeen,      // tokens differ from everything cached, from `position` on
    kEvicted,        // was there once; the room was needed
    kWindowMissing,  // the full blocks are there, the window's are not
  };
  Why why = Why::kNone;
  int position = 0;       // first token that has to be computed although a hit was hoped for
  int branch_tokens = 0;  // how far the nearest cached branch agrees beyond `position`'s block
};

struct KvMatch {
  int tokens = 0;  // covered by reused blocks, a multiple of 16
  KvMiss miss;
};

struct KvCounts {
  int total = 0, free = 0, held = 0, cached = 0, pinned = 0;  // the last four add up to the first
};

struct KvPolicy {
  uint64_t key_seed = 0;      // model digest, numerics version and KV type, folded
  int window_every = 512;     // window blocks before multiples of this are kept longer
  double tenant_share = 1.0;  // of cached blocks one tenant may hold while others want room
};

// Thread: engine only, so nothing here locks.
class KvSpace {
 public:
  KvSpace(const KvLayout& layout, const KvPolicy& policy);
  ~KvSpace();
  KvSpace(const KvSpace&) = delete;
  KvSpace& operator=(const KvSpace&) = delete;

  // Fills the empty `holding` with the longest run of cached blocks that starts `tokens`, at most
  // `limit` tokens of it, and says how many tokens that covers. Compares tokens, not only keys: a
  // collision must never hand one user another's text. A run ends only where the window group still
  // holds all that the next token sees.
  KvMatch Match(std::span<const Token> tokens, int limit, KvHolding& holding);

  // Makes the tables cover positions up to `num_computed + count`, taking free blocks and evicting
  // cached ones nobody holds; window blocks that no token from `num_computed` on sees are let go.
  // False when there is not enough room: then no block was taken.
  bool Reserve(KvHolding& holding, int num_computed, int count);
  // The most tokens, up to `count`, for which Reserve would say yes.
  int Room(const KvHolding& holding, int num_computed, int count) const;

  // The first `num_computed` of `tokens` are in the blocks now: offers full blocks for reuse.
  void Commit(KvHolding& holding, std::span<const Token> tokens, int num_computed);
  // A cut that will come back (the end of a prompt, of a turn, of a shared preamble): the window
  // blocks before it are kept longer. `position` is at most what was committed.
  void KeepCut(KvHolding& holding, int position);

  // Gives everything back. Published blocks stay cached until their room is needed.
  void Release(KvHolding& holding);

  // Speculation and preemption: forgets positions from `num_tokens` on.
  void Trim(KvHolding& holding, int num_tokens);

  KvCounts counts(KvGroup group) const;
  // Blocks that a sequence of `num_tokens` tokens holds at most, while computing `step_tokens` at a
  // time; what admission compares with the total.
  int BlocksFor(KvGroup group, int num_tokens, int step_tokens) const;

  // Checks every count and list against every other. An error is a bug of ours; tests ask for it
  // after each step, the engine when it is idle.
  Status SelfCheck() const;
  void DropCache();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
