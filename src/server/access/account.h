// SPDX-License-Identifier: Apache-2.0
// What each client's requests hold in memory and use of the processor: one account per key, or per
// address without keys. Memory is bounded in bytes here, not in requests.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "http/request_hold.h"
namespace hearth {

enum class Held : unsigned char {
  kBody,    // until it was read
  kPrompt,  // tokens in the engine, waiting or running
  kReply,   // bytes that the client has not taken
  kKept     // of a reply that is sent whole: its text and log-probabilities so far
};
inline constexpr std::array<const char*, 4> kHeldNames = {"body", "prompt", "reply", "kept"};

enum class Stage : unsigned char { kRead, kRender, kMask, kWrite, kStore };
inline constexpr std::array<const char*, 5> kStageNames = {"read", "render", "mask", "write",
                                                           "store"};

// How full the memory for requests is.
enum class Fullness : unsigned char {
  kCalm,
  kNoBackground,  // 85 %: nothing starts that nobody waits for
  kFewBodies,     // 92 %: only small ones, of clients that hold little
  kCutting        // 97 %: the connections that hold most are closed
};

struct AccountCounts {
  int64_t budget_bytes = 0, share_bytes = 0;
  std::array<int64_t, kHeldNames.size()> held_bytes{};
  std::array<double, kStageNames.size()> seconds{};
  int64_t accounts = 0;       // clients that hold something
  int64_t largest_bytes = 0;  // of one of them
  int64_t refused_share = 0, refused_full = 0, refused_background = 0, cut = 0;
  int64_t total() const;
};

class Accounts;

// One request's entry. Thread: any. Must not outlive its Accounts.
class RequestAccount final : public RequestHold {
 public:
  RequestAccount(Accounts& accounts, std::string client, std::function<void()> cut);
  ~RequestAccount() override;
  RequestAccount(const RequestAccount&) = delete;
  RequestAccount& operator=(const RequestAccount&) = delete;

  std::optional<HttpRefusal> SetBody(size_t bytes) override;
  void SetReply(size_t bytes) override;
  void Set(Held kind, size_t bytes);
  // False, and nothing changes, when its client would hold more than its share.
  bool TrySet(Held kind, size_t bytes);
  void Spend(Stage stage, double seconds);
  // What else ends it, for a request that outlives its connection. Not the account's thread to
  // keep.
  void OnCut(std::function<void()> cut);
  Accounts& accounts() { return accounts_; }

 private:
  friend class Accounts;
  Accounts& accounts_;
  const std::string client_;
  // Of the accounts' lock, all of it.
  uint64_t number_ = 0;  // in the order that they came
  std::array<int64_t, kHeldNames.size()> held_{};
  int64_t total_ = 0;
  bool is_cut_ = false;
  std::vector<std::function<void()>> cuts_;
};

// Thread: any. Holds are made for every request that needs a key or could.
class Accounts final : public RequestBudget {
 public:
  explicit Accounts(int64_t budget_bytes);
  ~Accounts() override;
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;

  Opened Open(const HttpRequest& request, std::optional<uint64_t> body_bytes,
              std::function<void()> cut) override;
  Fullness fullness() const;
  // For what nobody waits for: the seconds to wait instead, when it may not begin.
  std::optional<double> AskBackground();
  AccountCounts counts() const;
  // The budget for a machine where so much memory is usable.
  static int64_t BudgetFor(uint64_t usable_bytes);

 private:
  friend class RequestAccount;
  struct Account {
    int64_t held = 0;   // by all of its requests
    int64_t uncut = 0;  // by those that were not told to go
    std::unordered_set<RequestAccount*> requests;
  };
  using Time = std::chrono::steady_clock::time_point;
  void Enter(RequestAccount& request);
  void Leave(RequestAccount& request);
  void Change(RequestAccount& request, Held kind, int64_t bytes) HEARTH_REQUIRES(mu_);
  std::optional<HttpRefusal> Refuse(const Account& account, int64_t more) HEARTH_REQUIRES(mu_);
  double RetryAfter(int64_t over_bytes) const HEARTH_REQUIRES(mu_);
  double Filled(int64_t more) const HEARTH_REQUIRES(mu_);
  bool MustCut() const HEARTH_REQUIRES(mu_);
  // Whose connection goes first: of the client that holds most the request that holds most, and of
  // two that hold the same the one that came later.
  RequestAccount* Greediest() HEARTH_REQUIRES(mu_);
  void Keep();

  const int64_t budget_, share_;
  mutable Mutex mu_;
  CondVar wake_;
  std::map<std::string, Account> accounts_ HEARTH_GUARDED_BY(mu_);
  AccountCounts counts_ HEARTH_GUARDED_BY(mu_);
  uint64_t num_opened_ HEARTH_GUARDED_BY(mu_) = 0;
  int64_t held_ HEARTH_GUARDED_BY(mu_) = 0, uncut_ HEARTH_GUARDED_BY(mu_) = 0;
  // Bytes given back lately, fading: how soon there will be room.
  mutable double freed_ HEARTH_GUARDED_BY(mu_) = 0;
  mutable Time freed_at_ HEARTH_GUARDED_BY(mu_);
  bool must_look_ HEARTH_GUARDED_BY(mu_) = false;  // somebody may have to be cut
  bool is_stopping_ HEARTH_GUARDED_BY(mu_) = false;
  std::thread keeper_;  // cuts: whoever fills the memory may hold locks
};

// The processor time of the thread that makes it, charged to one stage after the other. A null
// account pays nothing, and outlives it otherwise.
class StageClock {
 public:
  StageClock(RequestAccount* account, Stage stage);
  ~StageClock();  // charges the last one
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;
  void Next(Stage stage);

 private:
  RequestAccount* const account_;
  Stage stage_;
  double began_;
};

// Processor time of this thread so far.
double ThreadSeconds();

}  // namespace hearth
