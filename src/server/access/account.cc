// SPDX-License-Identifier: Apache-2.0
#include "server/access/account.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "base/result.h"
#include "base/thread_name.h"
#include "server/access/client.h"

namespace hearth {
namespace {

// Shares of the budget; see Fullness.
constexpr double kNoBackgroundAt = 0.85, kFewBodiesAt = 0.92, kCutAt = 0.97;
// A chat of any usual length: still let in when much larger ones are not.
constexpr int64_t kSmallBody = int64_t{64} << 10;
// What was freed so long ago counts a third.
constexpr double kFadeS = 10;

double Fade(std::chrono::steady_clock::duration since) {
  return std::exp(-std::chrono::duration<double>(since).count() / kFadeS);
}

// Memory is scarce when somebody is cut: who cannot be told goes on, and the next one is told.
void Try(const std::function<void()>& cut) {
  try {
    cut();
  } catch (const std::bad_alloc&) {
  }
}

HttpRefusal Overfull(int status, std::string message, double retry_after_s) {
  HttpRefusal refusal;
  refusal.status = status;
  refusal.message = std::move(message);
  refusal.retry_after_s = static_cast<int>(std::ceil(retry_after_s));
  return refusal;
}

}  // namespace

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t AccountCounts::total() const {
  int64_t sum = 0;
  for (const int64_t bytes : held_bytes) sum += bytes;
  return sum;
}

RequestAccount::RequestAccount(Accounts& accounts, std::string client, std::function<void()> cut)
    : accounts_(accounts), client_(std::move(client)) {
  if (cut) cuts_.push_back(std::move(cut));
  accounts_.Enter(*this);
}

RequestAccount::~RequestAccount() { accounts_.Leave(*this); }

std::optional<HttpRefusal> RequestAccount::SetBody(size_t bytes) {
  const MutexLock lock(accounts_.mu_);
  const int64_t before = held_[static_cast<size_t>(Held::kBody)];
  accounts_.Change(*this, Held::kBody, static_cast<int64_t>(bytes));
  if (static_cast<int64_t>(bytes) <= before) return std::nullopt;
  return accounts_.Refuse(accounts_.accounts_[client_], 0);
}

void RequestAccount::SetReply(size_t bytes) { Set(Held::kReply, bytes); }

void RequestAccount::Set(Held kind, size_t bytes) {
  const MutexLock lock(accounts_.mu_);
  accounts_.Change(*this, kind, static_cast<int64_t>(bytes));
}

bool RequestAccount::TrySet(Held kind, size_t bytes) {
  const MutexLock lock(accounts_.mu_);
  const int64_t more = static_cast<int64_t>(bytes) - held_[static_cast<size_t>(kind)];
  if (accounts_.Refuse(accounts_.accounts_[client_], more)) return false;
  accounts_.Change(*this, kind, static_cast<int64_t>(bytes));
  return true;
}

void RequestAccount::Spend(Stage stage, double seconds) {
  const MutexLock lock(accounts_.mu_);
  accounts_.counts_.seconds[static_cast<size_t>(stage)] += seconds;
}

void RequestAccount::OnCut(std::function<void()> cut) {
  {
    const MutexLock lock(accounts_.mu_);
    if (!is_cut_) {
      cuts_.push_back(std::move(cut));
      return;
    }
  }
  cut();
}

Accounts::Accounts(int64_t budget_bytes)
    : budget_(budget_bytes),
      share_(budget_bytes / 2),
      freed_at_(std::chrono::steady_clock::now()),
      keeper_([this] { Keep(); }) {}

Accounts::~Accounts() {
  {
    const MutexLock lock(mu_);
    is_stopping_ = true;
  }
  wake_.NotifyAll();
  keeper_.join();
}

int64_t Accounts::BudgetFor(uint64_t usable_bytes) {
  constexpr uint64_t kMost = uint64_t{256} << 20, kLeast = uint64_t{32} << 20;
  return static_cast<int64_t>(std::clamp(usable_bytes / 8, kLeast, kMost));
}

void Accounts::Enter(RequestAccount& request) {
  const MutexLock lock(mu_);
  request.number_ = ++num_opened_;
  const auto found = accounts_.try_emplace(request.client_).first;
  try {
    found->second.requests.insert(&request);
  } catch (const std::bad_alloc&) {
    if (found->second.requests.empty()) accounts_.erase(found);
    throw;
  }
}

void Accounts::Leave(RequestAccount& request) {
  const MutexLock lock(mu_);
  for (size_t kind = 0; kind < kHeldNames.size(); ++kind) {
    Change(request, static_cast<Held>(kind), 0);
  }
  const auto found = accounts_.find(request.client_);
  found->second.requests.erase(&request);
  if (found->second.requests.empty()) accounts_.erase(found);
}

void Accounts::Change(RequestAccount& request, Held kind, int64_t bytes) {
  int64_t& held = request.held_[static_cast<size_t>(kind)];
  const int64_t more = bytes - held;
  if (more == 0) return;
  Account& account = accounts_[request.client_];
  held = bytes;
  request.total_ += more;
  account.held += more;
  held_ += more;
  counts_.held_bytes[static_cast<size_t>(kind)] += more;
  if (!request.is_cut_) {
    account.uncut += more;
    uncut_ += more;
  }
  if (more < 0) {
    const Time now = std::chrono::steady_clock::now();
    freed_ = freed_ * Fade(now - freed_at_) - static_cast<double>(more);
    freed_at_ = now;
  } else if (MustCut() || account.uncut > share_) {
    must_look_ = true;
    wake_.NotifyOne();
  }
}

double Accounts::Filled(int64_t more) const {
  return static_cast<double>(held_ + more) / static_cast<double>(budget_);
}

bool Accounts::MustCut() const {
  return static_cast<double>(uncut_) > kCutAt * static_cast<double>(budget_);
}

Fullness Accounts::fullness() const {
  const MutexLock lock(mu_);
  const double filled = Filled(0);
  return filled > kCutAt            ? Fullness::kCutting
         : filled > kFewBodiesAt    ? Fullness::kFewBodies
         : filled > kNoBackgroundAt ? Fullness::kNoBackground
                                    : Fullness::kCalm;
}

// As long as giving back so much took lately, within what a client would wait.
double Accounts::RetryAfter(int64_t over_bytes) const {
  const double per_s = freed_ * Fade(std::chrono::steady_clock::now() - freed_at_) / kFadeS;
  constexpr double kLeast = 1, kMost = 30;
  if (per_s <= 0) return kMost;
  return std::clamp(static_cast<double>(over_bytes) / per_s, kLeast, kMost);
}

std::optional<HttpRefusal> Accounts::Refuse(const Account& account, int64_t more) {
  if (account.held + more > share_) {
    ++counts_.refused_share;
    return Overfull(429,
                    Printf("this client's requests and unread replies hold %lld bytes of the "
                           "server's memory; the limit for one client is %lld",
                           static_cast<long long>(account.held), static_cast<long long>(share_)),
                    RetryAfter(account.held + more - share_));
  }
  if (Filled(more) <= kFewBodiesAt) return std::nullopt;
  // The little that is left is for those who hold less than an equal share.
  const int64_t equal = budget_ / std::max<int64_t>(1, static_cast<int64_t>(accounts_.size()));
  if (more <= kSmallBody && account.held <= equal && Filled(more) <= 1) return std::nullopt;
  ++counts_.refused_full;
  const auto bound = static_cast<int64_t>(kFewBodiesAt * static_cast<double>(budget_));
  return Overfull(503, "the server's memory for requests is full",
                  RetryAfter(held_ + more - bound));
}

std::optional<double> Accounts::AskBackground() {
  const MutexLock lock(mu_);
  if (Filled(0) <= kNoBackgroundAt) return std::nullopt;
  ++counts_.refused_background;
  return RetryAfter(held_ - static_cast<int64_t>(kNoBackgroundAt * static_cast<double>(budget_)));
}

RequestBudget::Opened Accounts::Open(const HttpRequest& request, std::optional<uint64_t> body_bytes,
                                     std::function<void()> cut) {
  auto hold = std::make_shared<RequestAccount>(*this, ClientOf(request), std::move(cut));
  const MutexLock lock(mu_);
  const auto more = static_cast<int64_t>(std::min<uint64_t>(body_bytes.value_or(0), INT64_MAX / 4));
  std::optional<HttpRefusal> refusal = Refuse(accounts_[hold->client_], more);
  if (refusal) return {nullptr, std::move(refusal)};
  return {std::move(hold), std::nullopt};
}

AccountCounts Accounts::counts() const {
  const MutexLock lock(mu_);
  AccountCounts counts = counts_;
  counts.budget_bytes = budget_;
  counts.share_bytes = share_;
  for (const auto& [client, account] : accounts_) {
    counts.accounts += account.held > 0 ? 1 : 0;
    counts.largest_bytes = std::max(counts.largest_bytes, account.held);
  }
  return counts;
}

RequestAccount* Accounts::Greediest() {
  Account* most = nullptr;
  for (auto& [client, account] : accounts_) {
    if (most == nullptr || account.uncut > most->uncut) most = &account;
  }
  if (most == nullptr || (!MustCut() && most->uncut <= share_)) return nullptr;
  RequestAccount* largest = nullptr;
  for (RequestAccount* request : most->requests) {
    if (request->is_cut_ || request->total_ == 0) continue;
    const auto rank = [](const RequestAccount& r) { return std::pair(r.total_, r.number_); };
    if (largest == nullptr || rank(*request) > rank(*largest)) largest = request;
  }
  if (largest == nullptr) return nullptr;
  largest->is_cut_ = true;
  most->uncut -= largest->total_;
  uncut_ -= largest->total_;
  ++counts_.cut;
  return largest;
}

void Accounts::Keep() {
  NameThread("accounts");
  MutexLock lock(mu_);
  while (!is_stopping_) {
    wake_.Wait(mu_, [this]() HEARTH_REQUIRES(mu_) { return is_stopping_ || must_look_; });
    must_look_ = false;
    while (RequestAccount* request = Greediest()) {
      std::vector<std::function<void()>> cuts = std::exchange(request->cuts_, {});
      lock.Unlock();
      for (const std::function<void()>& cut : cuts) Try(cut);
      cuts.clear();
      lock.Lock();
    }
  }
}

StageClock::StageClock(RequestAccount* account, Stage stage)
    : account_(account), stage_(stage), began_(account == nullptr ? 0 : ThreadSeconds()) {}

StageClock::~StageClock() { Next(stage_); }

void StageClock::Next(Stage stage) {
  if (account_ == nullptr) return;
  const double now = ThreadSeconds();
  account_->Spend(stage_, now - began_);
  began_ = now;
  stage_ = stage;
}

}  // namespace hearth
