// SPDX-License-Identifier: Apache-2.0
// All KV blocks of the machine as the scheduler sees them: which sequence holds which, and which
// earlier work can be used again. Counts and names blocks; never touches the bytes inside.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/block_key.h"
#include "kv/block_pool.h"
#include "kv/block_watch.h"
#include "kv/layout.h"
namespace hearth {

// Whose cached work a sequence may see. Sequences share blocks only within equal salts.
struct KvDomain {
  uint32_t tenant = 0;  // whose quota cached blocks count against
  uint64_t salt = 0;    // part of every key
};

// Where a block hangs in the prefix cache. Goes stale when the cache lets go of it.
struct KvNode {
  int32_t index = -1;
  uint32_t serial = 0;
};

// What one sequence holds. Made empty, filled by KvSpace; must be released before it goes.
struct KvHolding {
  // One per group, of equal length, or none yet. In a group with a window, blocks that no later
  // token can see are kNone.
  std::vector<BlockTable> tables;
  std::vector<BlockKey> keys;  // of the sequence's full blocks of tokens, as far as committed
  std::vector<KvNode> nodes;   // KvSpace's own notes: of those, the ones the cache knows
  KvDomain domain;             // set before Match, the same until Release
};

// Why a prompt was not found further: for the client that wonders.
struct KvMiss {
  enum class Why : uint8_t {
    kNone,           // everything that could be reused was
    kNeverSeen,      // tokens differ from everything cached, from `position` on
    kEvicted,        // was there once; the room was needed
    kWindowMissing,  // the full blocks are there, those of a group with a window are not
    kNotWanted,      // was not looked for: something is asked of every position
  };
  Why why = Why::kNone;
  int position = 0;       // first token that has to be computed although a hit was hoped for
  int branch_tokens = 0;  // how many tokens from there on the nearest cached branch agrees with:
                          // position + branch_tokens is the first that differs from all we have
};

struct KvMatch {
  int tokens = 0;  // covered by reused blocks, a multiple of a block's
  KvMiss miss;
};

struct KvPolicy {
  uint64_t key_seed = 0;      // part of every key: kv/content_seed.h
  int window_every = 512;     // window blocks before multiples of this are kept longer
  double tenant_share = 1.0;  // of a group's blocks one tenant may cache while others want room
  // Attention over this many tokens costs as much as the rest of the model: what makes a block deep
  // in a context dearer than one at its start. gpt-oss-20b: 7.2 GFLOP a token for the weights in
  // use, 197 kFLOP per token looked at in the 12 full layers, so about 36,000.
  int attention_knee = 36000;
  int key_bits = 128;           // fewer only in tests that want collisions
  bool offers_idle = false;     // blocks that nobody holds any more are offered to a tier: TakeIdle
  BlockWatch* watch = nullptr;  // hears of every cached block; outlives the space
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
  // collision must never hand one user another's text. A run ends only where every group with a
  // window still holds all that the next token sees.
  KvMatch Match(std::span<const Token> tokens, int limit, KvHolding& holding);

  // Makes the tables cover positions up to `num_computed + count`, taking free blocks and evicting
  // cached ones nobody holds; window blocks that no token from `num_computed` on sees are let go.
  // False when there is not enough room: then no block was taken.
  bool Reserve(KvHolding& holding, int num_computed, int count);
  // The most tokens, up to `count`, for which Reserve would say yes.
  int Room(const KvHolding& holding, int num_computed, int count) const;

  // The first `num_computed` of `tokens` are in the blocks now: offers full blocks for reuse. Where
  // the cache has an equal block already, the group that sees everything goes on with that one.
  void Commit(KvHolding& holding, std::span<const Token> tokens, int num_computed);
  // A checkpoint that will come back (the end of a prompt, of a turn, of a shared preamble): the
  // window blocks before it are kept longer. `position` is at most what was committed.
  void KeepCheckpoint(KvHolding& holding, int position);

  // What a sequence of the same salt that began with exactly `tokens` went on with: at most `count`
  // tokens, none when no such one is cached; of several one that was used lately. `holding` is
  // that of a sequence with these tokens. A guess about the future: nothing is held or kept longer.
  void Continue(const KvHolding& holding, std::span<const Token> tokens, int count,
                std::vector<Token>& out) const;

  // Gives everything back. Published blocks stay cached until their room is needed, and the end of
  // what was committed is a checkpoint.
  void Release(KvHolding& holding);

  // Speculation and preemption: forgets positions from `num_tokens` on, and says how many tokens
  // are still covered. Fewer than asked: down to a block's beginning when the block at the end was
  // published and so must not be written again; 0, and all is released, when window blocks that the
  // next token would see are gone (then Match anew).
  int Trim(KvHolding& holding, int num_tokens);

  // For tiers: how many of the first `limit` tokens Match would cover, and the keys of their
  // blocks. Holds nothing.
  int Peek(const KvDomain& domain, std::span<const Token> tokens, int limit,
           std::vector<BlockKey>& keys) const;
  // Adds keys until there are those of the first `count` blocks of tokens, whether they are here
  // or not.
  void ExtendKeys(const KvDomain& domain, std::span<const Token> tokens, size_t count,
                  std::vector<BlockKey>& keys) const;
  // The first block of the group that the token after `num_blocks` blocks sees.
  int FirstNeeded(int group, int num_blocks) const;
  // After Match: takes blocks for the tokens from there up to `num_tokens`, a multiple of a
  // block's, whose bytes the caller brings; in a group with a window only for those that the next
  // token sees. False, and nothing changed, when there is no room.
  bool Extend(KvHolding& holding, int num_tokens);

  // A cached block that nobody holds any more and that was not taken before.
  struct IdleBlock {
    int group = 0;
    BlockId id{};
    BlockKey key, parent;  // no parent: all zero
    uint32_t tenant = 0;
    std::vector<Token> tokens;
  };
  // The next one, pinned for the caller, who unpins it. None: nothing is offered.
  std::optional<IdleBlock> TakeIdle();
  bool has_idle() const;

  // A tier has it: in memory it is worth what fetching it takes, and goes before its equals. A
  // hint: a block that is not here, or a tier that loses it, are no harm.
  void MarkBelow(int group, const BlockKey& key);

  // While a transfer to or from a tier runs, a block's bytes stay where they are, whoever lets go.
  void Pin(int group, BlockId id);
  void Unpin(int group, BlockId id);

  const KvLayout& layout() const;
  KvCounts counts(int group) const;
  // Blocks that a sequence of `num_tokens` tokens holds at most, while computing `step_tokens` at a
  // time; what admission compares with the total.
  int BlocksFor(int group, int num_tokens, int step_tokens) const;

  // Checks every count and list against every other. An error is a bug of ours; tests ask for it
  // after each step, the engine when it is idle.
  Status SelfCheck() const;
  // The same, and that the references counted are exactly those of `holdings`, all there are.
  Status SelfCheck(std::span<const KvHolding* const> holdings) const;
  // Tells of every cached block, parents first.
  void TellAll(BlockWatch& watch) const;
  // Frees every cached block that no sequence holds.
  void DropCache();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
