// SPDX-License-Identifier: Apache-2.0
// Which of the offered models are in memory: who is loaded next, who leaves for it, who waits.
// Pure: no threads, no clock, nothing is opened here; events go in, what is to be done comes out.
// The rules are in docs/several-models.md.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

enum class ModelState : unsigned char { kOffered, kLoading, kLoaded, kUnloading };
const char* NameOf(ModelState state);

struct PoolOptions {
  int64_t budget_bytes = 0;
  // For models that need more than is free while others are at work: so long they wait for somebody
  // to have nothing to do, then those who must go take no further requests. Longer than most
  // replies' pauses, shorter than people's.
  int64_t patience_us = 2'000'000;
  int max_waiting = 4096;  // requests, for all models together
};

// A request that waits for a model, or a use of it.
using ModelTicket = uint64_t;

struct PoolEntry {
  std::string name;
  bool is_pinned = false;
  int64_t keep_alive_us = 0;  // idle for so long it leaves; negative: never
  ModelState state = ModelState::kOffered;
  std::optional<int64_t> bytes = {};  // what it will hold; none: not measured yet
  int num_users = 0;
  int64_t last_use_us = 0;
  int64_t expires_us = -1;  // -1: not while it is used, or never
  bool is_leaving = false;  // somebody asked for it to go
  bool is_claimed =
      false;  // takes no further requests: a model that waited too long needs its room
  bool was_measured = false;
  std::optional<int64_t> wanted_us = {};  // somebody asked for it to be loaded, then
  std::string error = {};                 // why it could not be loaded the last time

  struct Waiter {
    ModelTicket ticket = 0;
    int64_t since_us = 0;
    std::optional<int64_t> keep_alive_us = {};
  };
  std::deque<Waiter> waiters = {};  // the oldest first

  bool is_idle() const { return state == ModelState::kLoaded && num_users == 0; }
};

struct PoolAction {
  enum class Kind : unsigned char {
    kMeasure,  // then OnMeasured; one of these three is under way at a time
    kLoad,     // then OnLoaded
    kUnload,   // then OnUnloaded
    kGrant,    // `ticket` has the model until Release
    kRefuse    // `ticket` does not get it, because of `why`
  };
  Kind kind = Kind::kGrant;
  int model = 0;
  ModelTicket ticket = 0;
  Status why = {};
};
using PoolActions = std::vector<PoolAction>;

// Times are of one clock that does not go back. Every event adds to `out` what is to be done.
// Thread: one at a time.
class ModelPool {
 public:
  explicit ModelPool(const PoolOptions& options) : options_(options) {}
  // Before the first event. A pinned one is loaded as soon as can be.
  int Offer(std::string name, bool is_pinned, int64_t keep_alive_us);

  // Tickets are new and unique. `keep_alive_us`, where given, is the model's from then on.
  void Ask(int model, ModelTicket ticket, std::optional<int64_t> keep_alive_us, int64_t now_us,
           PoolActions& out);
  // Whoever waits with that ticket no longer does; unknown ones are ignored.
  void Forget(ModelTicket ticket, int64_t now_us, PoolActions& out);
  void Release(int model, int64_t now_us, PoolActions& out);
  void OnMeasured(int model, Result<int64_t> bytes, int64_t now_us, PoolActions& out);
  void OnLoaded(int model, const Status& status, int64_t now_us, PoolActions& out);
  void OnUnloaded(int model, int64_t now_us, PoolActions& out);
  // Somebody wants it loaded, pinned or not; nothing given: that stays as it is.
  void Load(int model, std::optional<bool> pin, std::optional<int64_t> keep_alive_us,
            int64_t now_us, PoolActions& out);
  // It leaves when nobody uses it any more. kInvalid for a pinned one.
  Status Unload(int model, int64_t now_us, PoolActions& out);
  // Refuses those who wait and all who come; nothing is loaded or unloaded any more.
  void Close(int64_t now_us, PoolActions& out);
  // Time has passed.
  void Tick(int64_t now_us, PoolActions& out) { Settle(now_us, out); }
  // When that may change something; -1: it will not.
  int64_t NextTickUs() const;

  int size() const { return static_cast<int>(entries_.size()); }
  const PoolEntry& at(int model) const { return entries_[static_cast<size_t>(model)]; }
  int64_t budget_bytes() const { return options_.budget_bytes; }
  // Of models that are loaded, or are being loaded or unloaded. Never beyond the budget.
  int64_t used_bytes() const;
  int num_waiting() const;

 private:
  PoolEntry& entry(int model) { return entries_[static_cast<size_t>(model)]; }
  void Settle(int64_t now_us, PoolActions& out);
  void DropHopeless(PoolActions& out);
  std::optional<PoolAction> NextJob(int64_t now_us);
  std::optional<PoolAction> MakeRoom(int model, int64_t now_us, bool& is_blocked);
  std::vector<int> VictimsFor(int64_t bytes) const;
  std::vector<int> InLine() const;
  void GrantAll(int64_t now_us, PoolActions& out);
  void Grant(int model, ModelTicket ticket, std::optional<int64_t> keep_alive_us, int64_t now_us,
             PoolActions& out);
  void RefuseAll(int model, const Status& why, PoolActions& out);
  int64_t PinnedBytes(int except) const;

  const PoolOptions options_;
  std::vector<PoolEntry> entries_;
  int64_t settled_us_ = -1;
  bool is_busy_ = false;  // one of the jobs is under way
  bool is_closed_ = false;
};

}  // namespace hearth
