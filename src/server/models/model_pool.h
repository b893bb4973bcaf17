// SPDX-License-Identifier: Apache-2.0
// Which of the offered models are in memory: who is loaded next, who leaves for it, who waits.
// Pure: no threads, no clock, nothing is opened here; events go in, what is to be done comes out.
// The rules are in docs/several-models.md.
#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/models/load_debts.h"
namespace hearth {

enum class ModelState : unsigned char { kOffered, kLoading, kLoaded, kUnloading };
const char* NameOf(ModelState state);

struct PoolOptions {
  int64_t budget_bytes = 0;
  // For models that need more than is free while others are at work: so long they wait for somebody
  // to have nothing to do, then those who must go take no further requests. Longer than most
  // replies' pauses, shorter than people's.
  int64_t patience_us = 2'000'000;
  int max_waiting = 4096;  // requests, for all models together; half of them one client's
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
    std::string client = {};
  };
  std::deque<Waiter> waiters = {};  // the oldest first

  // What one client does with it. Kept for a while after its last request.
  struct Use {
    int num_waiting = 0, num_users = 0;
    int64_t last_us = -1;  // of a request that had it
  };
  std::map<std::string, Use> clients = {};
  int64_t loaded_us = 0;                // since when it has been there
  std::optional<int64_t> load_us = {};  // how long loading takes, lately
  bool is_contested = false;            // it leaves although others than those who wait use it
  bool is_prepaid = false;              // who made it leave has paid for its way back
  uint64_t num_taken = 0;               // how often it left so

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

  // Tickets are new and unique. `client` is whose request it is; `keep_alive_us`, where given, is
  // the model's from then on.
  void Ask(int model, const std::string& client, ModelTicket ticket,
           std::optional<int64_t> keep_alive_us, int64_t now_us, PoolActions& out);
  // Whoever waits with that ticket no longer does; unknown ones are ignored.
  void Forget(ModelTicket ticket, int64_t now_us, PoolActions& out);
  void Release(int model, const std::string& client, int64_t now_us, PoolActions& out);
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
  // Of those who wait: for a model whose room others keep for now.
  int num_deferred() const;

 private:
  PoolEntry& entry(int model) { return entries_[static_cast<size_t>(model)]; }
  void Settle(int64_t now_us, PoolActions& out);
  void DropHopeless(PoolActions& out);
  std::optional<PoolAction> NextJob(int64_t now_us);
  // What those in line so far mean for those behind them.
  struct Before {
    bool is_blocked = false;  // nobody passes
    // Somebody waits a little for room, and owes this: who owes more takes none meanwhile.
    int64_t least_owed_us = std::numeric_limits<int64_t>::max();
  };
  std::optional<PoolAction> MakeRoom(int model, int64_t now_us, Before& before);
  std::vector<int> VictimsFor(int model, int64_t bytes, int64_t now_us) const;
  std::vector<int> InLine(int64_t now_us) const;
  bool IsInLine(int model) const;
  void GrantAll(int64_t now_us, PoolActions& out);
  void RefuseAll(int model, const Status& why, PoolActions& out);
  int64_t PinnedBytes(int except) const;
  int NumWaiting(const std::string& client) const;
  void Begin(const PoolAction& job, int64_t now_us);

  // model_pool_shares.cc: what a load costs others, and who pays.
  int64_t CostUs(int model) const;
  int64_t MostCostUs() const;
  // So long a model waits at most for others to have had their time with theirs.
  int64_t LongestUs(int model) const;
  // What the one of its waiters owes that owes least; and since when one has waited, not counting
  // the time before it was served something else.
  int64_t OwedUs(int model, int64_t now_us) const;
  int64_t SinceUs(int model, int64_t now_us) const;
  bool IsUsedBeside(int model, const std::string& client, const PoolEntry::Use& use, int wanted,
                    int64_t now_us) const;
  bool IsContested(int model, int wanted, int64_t now_us) const;
  // Until when, as it looks now, `model` does not leave for `wanted`; nothing: it may leave.
  std::optional<int64_t> KeptUntilUs(int model, int wanted, int64_t now_us) const;
  void Claim(int wanted, const std::vector<int>& victims, bool all_idle, int64_t now_us);
  void DropClaims();
  void BeginLoad(int model, int64_t now_us);
  void EndLoad(int model, int64_t now_us);
  bool HasOthers(const std::vector<std::string>& clients, int64_t now_us) const;
  void ChargeAll(const std::vector<std::string>& clients, int64_t us, int model, int64_t now_us);
  std::vector<std::string> WaitingFor(int model) const;
  static PoolEntry::Use& UseOf(PoolEntry& asked, const std::string& client);

  const PoolOptions options_;
  std::vector<PoolEntry> entries_;
  int64_t settled_us_ = -1;
  bool is_busy_ = false;  // one of the jobs is under way
  int turn_ = -1;         // the model in line that others leave for now
  LoadDebts debts_;
  std::vector<std::string> payers_;  // of the load under way
  bool is_disturbing_ = false;       // there were others when it began
  int64_t load_began_us_ = 0;
  bool is_closed_ = false;
};

}  // namespace hearth
