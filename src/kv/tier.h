// SPDX-License-Identifier: Apache-2.0
// A store of KV blocks below the backend's memory: host memory, a disk, another machine. Blocks go
// and come by what they hold. Nothing here waits, and nothing of it is relied upon: every answer
// may be late, wrong, double or missing.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kv/block_key.h"
#include "kv/tier_bytes.h"
namespace hearth {

// The block of one group for a block of tokens and all that came before them. Equal in every
// process with the same model, numerics, layout and secret (kv/content_seed.h).
struct TierKey {
  BlockKey block;
  int group = 0;
  auto operator<=>(const TierKey&) const = default;
};

// Chosen by the caller; never used twice.
using TransferId = uint64_t;

enum class TierOutcome : uint8_t {
  kDone,     // stored, or fetched
  kMissing,  // there is no such block
  kFull,     // no room for it
  kFailed,   // anything else
};

struct TierDone {
  TransferId id = 0;
  TierOutcome outcome = TierOutcome::kFailed;
  TierBytes record;          // of a fetch that was done
  bool is_verified = false;  // the tier has compared the record with its sum or opened its seal
};

// What a tier says of itself. Counts are since its start.
struct TierStats {
  uint64_t num_hits = 0, num_misses = 0;      // fetches
  uint64_t num_corrupt = 0, num_failed = 0;   // of records that were wrong; of reading or writing
  uint64_t num_stored = 0, num_declined = 0;  // records written; not written, by choice
  int64_t bytes_read = 0, bytes_written = 0;  // of records
  int64_t bytes_spared = 0;  // written once more, so that one tenant does not push out another's
  int64_t read_us = 0, write_us = 0;  // spent in reading and writing them
  int64_t used_bytes = 0, capacity_bytes = 0;
  int64_t num_records = 0;                    // -1: it does not know
  bool is_reading = true, is_writing = true;  // false: given up for a while after errors
};

struct TierPart {
  std::string name;
  TierStats stats;
};

class TierListener {
 public:
  virtual ~TierListener() = default;
  // Thread: any, also from within a call of the tier.
  virtual void OnTransfer(TierDone done) = 0;
};

// Thread: one at a time.
class Tier {
 public:
  virtual ~Tier() = default;
  virtual std::string_view name() const = 0;
  // Where answers go; null: nowhere from now on. When it returns, the listener before is not called
  // any more.
  virtual void Connect(TierListener* listener) = 0;
  // A guess, at once, without asking anybody. Wrong either way it costs time and nothing else.
  virtual bool MayHave(const TierKey& key) const = 0;
  // Which of its parts a fetch would come from, in the order of parts(); -1: none. As much a guess.
  virtual int PartOf(const TierKey& key) const { return MayHave(key) ? 0 : -1; }
  // Whether storing it is of use; likewise.
  virtual bool Wants(const TierKey& key) const { return !MayHave(key); }
  // For tiers that must ask somebody what they have. True: answered once, as a transfer without a
  // record; from then on MayHave knows of these keys. False: it knows already, or never will.
  virtual bool Ask([[maybe_unused]] TransferId id,
                   [[maybe_unused]] const std::vector<TierKey>& keys) {
    return false;
  }
  // Each is answered once, whenever that is. `tenant`: whose share of the tier it counts against;
  // of a fetch, a copy that is kept nearer.
  virtual void Store(TransferId id, const TierKey& key, uint32_t tenant,
                     std::vector<std::byte> record) = 0;
  virtual void Fetch(TransferId id, const TierKey& key, uint32_t tenant) = 0;
  // The answer is not wanted any more; it may come all the same.
  virtual void Cancel(TransferId id) = 0;
  // Thread: any.
  virtual TierStats stats() const { return {}; }
  // Those that it is made of; itself when it is one. Thread: any.
  virtual std::vector<TierPart> parts() const { return {{std::string(name()), stats()}}; }
};

}  // namespace hearth
