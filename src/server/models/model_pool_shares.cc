// SPDX-License-Identifier: Apache-2.0
// The part of the pool that keeps clients apart: what a load costs those who did not ask for it,
// who pays for that, and whose models stay meanwhile. A client alone meets none of it.
#include <algorithm>
#include <limits>
#include <utility>

#include "server/models/model_pool.h"

namespace hearth {
namespace {

// To a client, losing its model to another one costs both loads: that one's, and its own model's
// way back. All times below are so many of that sum.

// A model that somebody uses stays so long once it is there, whoever wants its room. Two clients
// that want different models, with room for one, so lose a ninth of their time to loading.
constexpr int64_t kStay = 4;
// Somebody uses a model whose last request ended less long ago.
constexpr int64_t kLately = 4;
// Nobody waits longer for others to have had their time, whatever is owed.
constexpr int64_t kLongest = 2 * LoadDebts::kForgiven;

// What a load takes before the first one was timed: a slow disk's rate.
constexpr int64_t kBytesPerUs = 500;
constexpr int64_t kLeastUs = 1000;  // a clock's grain, and the change itself

// Of a model's clients so many are remembered that have no request now.
constexpr size_t kMostClients = 32;

}  // namespace

PoolEntry::Use& ModelPool::UseOf(PoolEntry& asked, const std::string& client) {
  const auto found = asked.clients.find(client);
  if (found != asked.clients.end()) return found->second;
  if (asked.clients.size() >= kMostClients) {
    auto oldest = asked.clients.end();
    for (auto each = asked.clients.begin(); each != asked.clients.end(); ++each) {
      if (each->second.num_waiting + each->second.num_users > 0) continue;
      if (oldest == asked.clients.end() || each->second.last_us < oldest->second.last_us) {
        oldest = each;
      }
    }
    if (oldest != asked.clients.end()) asked.clients.erase(oldest);
  }
  return asked.clients[client];
}

int ModelPool::NumWaiting(const std::string& client) const {
  int sum = 0;
  for (const PoolEntry& each : entries_) {
    const auto use = each.clients.find(client);
    if (use != each.clients.end()) sum += use->second.num_waiting;
  }
  return sum;
}

int ModelPool::num_deferred() const {
  size_t sum = 0;
  for (int i = 0; i < size(); ++i) {
    if (!IsInLine(i) || i == turn_ || !at(i).bytes) continue;
    if (used_bytes() + *at(i).bytes <= options_.budget_bytes) continue;
    const bool is_kept_out = std::ranges::any_of(entries_, [&](const PoolEntry& each) {
      const auto kept = static_cast<int>(&each - entries_.data());
      return each.state == ModelState::kLoaded && KeptUntilUs(kept, i, settled_us_);
    });
    if (is_kept_out) sum += at(i).waiters.size();
  }
  return static_cast<int>(sum);
}

int64_t ModelPool::CostUs(int model) const {
  const PoolEntry& each = at(model);
  return std::max(kLeastUs, each.load_us.value_or(each.bytes.value_or(0) / kBytesPerUs));
}

int64_t ModelPool::MostCostUs() const {
  int64_t most_us = 0;
  for (int i = 0; i < size(); ++i) most_us = std::max(most_us, CostUs(i));
  return most_us;
}

int64_t ModelPool::LongestUs(int model) const { return kLongest * (CostUs(model) + MostCostUs()); }

int64_t ModelPool::OwedUs(int model, int64_t now_us) const {
  if (at(model).wanted_us) return 0;  // the operator's word
  int64_t least_us = std::numeric_limits<int64_t>::max();
  for (const auto& [client, use] : at(model).clients) {
    if (use.num_waiting > 0) least_us = std::min(least_us, debts_.OwedUs(client, now_us));
  }
  return least_us;
}

int64_t ModelPool::SinceUs(int model, int64_t now_us) const {
  const PoolEntry& each = at(model);
  int64_t since_us = each.wanted_us.value_or(now_us);
  for (const PoolEntry::Waiter& waiter : each.waiters) {
    if (waiter.since_us >= since_us) break;  // as all that came later
    const int64_t served_us = debts_.ServedUs(waiter.client, now_us);
    since_us = std::min(since_us, std::max(waiter.since_us, served_us));
  }
  return since_us;
}

// Whether a client's use of `model` counts against those who wait for `wanted`. Not if it waits for
// that itself; nor if it has moved on to a third one and owes more than they do.
bool ModelPool::IsUsedBeside(int model, const std::string& client, const PoolEntry::Use& use,
                             int wanted, int64_t now_us) const {
  const bool is_at_it = use.num_users + use.num_waiting > 0;
  const int64_t lately_us = kLately * (CostUs(model) + CostUs(wanted));
  if (!is_at_it && (use.last_us < 0 || now_us - use.last_us >= lately_us)) return false;
  bool waits_elsewhere = false;
  for (int i = 0; i < size(); ++i) {
    const auto other = at(i).clients.find(client);
    if (i == model || other == at(i).clients.end() || other->second.num_waiting == 0) continue;
    if (i == wanted) return false;
    waits_elsewhere = true;
  }
  return !waits_elsewhere || debts_.OwedUs(client, now_us) <= OwedUs(wanted, now_us);
}

bool ModelPool::IsContested(int model, int wanted, int64_t now_us) const {
  return std::ranges::any_of(at(model).clients, [&](const auto& each) {
    return IsUsedBeside(model, each.first, each.second, wanted, now_us);
  });
}

std::optional<int64_t> ModelPool::KeptUntilUs(int model, int wanted, int64_t now_us) const {
  const PoolEntry& kept = at(model);
  if (at(wanted).wanted_us || (wanted == turn_ && kept.is_claimed)) return {};
  const int64_t last_us = SinceUs(wanted, now_us) + LongestUs(wanted);
  if (last_us <= now_us) return {};
  const int64_t cost_us = CostUs(model) + CostUs(wanted);
  const int64_t owed_us = OwedUs(wanted, now_us);
  int64_t until_us = now_us;
  for (const auto& [client, use] : kept.clients) {
    if (!IsUsedBeside(model, client, use, wanted, now_us)) continue;
    int64_t stays_us = kept.loaded_us + kStay * cost_us;
    if (owed_us > debts_.OwedUs(client, now_us)) {
      stays_us = std::max(stays_us, now_us + owed_us * LoadDebts::kForgiven);
    }
    const bool is_at_it = use.num_users + use.num_waiting > 0;
    if (!is_at_it) stays_us = std::min(stays_us, use.last_us + kLately * cost_us);
    until_us = std::max(until_us, stays_us);
  }
  until_us = std::min(until_us, last_us);
  if (until_us <= now_us) return {};
  return until_us;
}

std::vector<std::string> ModelPool::WaitingFor(int model) const {
  std::vector<std::string> clients;
  for (const auto& [client, use] : at(model).clients) {
    if (use.num_waiting > 0) clients.push_back(client);
  }
  return clients;
}

void ModelPool::ChargeAll(const std::vector<std::string>& clients, int64_t us, int model,
                          int64_t now_us) {
  if (clients.empty()) return;
  const int64_t each_us = us / static_cast<int64_t>(clients.size());
  const int64_t most_us = 2 * (CostUs(model) + MostCostUs());
  for (const std::string& client : clients) debts_.Charge(client, each_us, most_us, now_us);
}

// Those who wait for `wanted` get the victims' room. Paid at once for what others lose: who leaves
// before the end has disturbed them as well.
void ModelPool::Claim(int wanted, const std::vector<int>& victims, bool all_idle, int64_t now_us) {
  const bool is_same = turn_ == wanted;
  turn_ = wanted;
  int64_t lost_us = 0;
  for (int i = 0; i < size(); ++i) {
    PoolEntry& each = entry(i);
    const bool is_victim = std::ranges::find(victims, i) != victims.end();
    const bool was_contested = is_same && each.is_contested;
    each.is_contested = is_victim && (was_contested || IsContested(i, wanted, now_us));
    // The idle ones go at once. If only others need them they can still be had until then.
    each.is_claimed = is_victim && (!all_idle || each.is_contested);
    if (each.is_contested && !was_contested) lost_us += CostUs(i);
  }
  if (lost_us > 0) ChargeAll(WaitingFor(wanted), lost_us, wanted, now_us);
}

void ModelPool::DropClaims() {
  turn_ = -1;
  for (PoolEntry& each : entries_) {
    if (each.state == ModelState::kLoaded) each.is_claimed = each.is_contested = false;
  }
}

// Somebody else than `clients` uses or wants something.
bool ModelPool::HasOthers(const std::vector<std::string>& clients, int64_t now_us) const {
  for (int i = 0; i < size(); ++i) {
    for (const auto& [client, use] : at(i).clients) {
      if (std::ranges::find(clients, client) != clients.end()) continue;
      if (use.num_users + use.num_waiting > 0) return true;
      if (use.last_us >= 0 && now_us - use.last_us < kLately * CostUs(i)) return true;
    }
  }
  return false;
}

void ModelPool::BeginLoad(int model, int64_t now_us) {
  load_began_us_ = now_us;
  payers_ = WaitingFor(model);
  // It was there until others took its room, and they have paid for this.
  if (std::exchange(entry(model).is_prepaid, false)) payers_.clear();
  is_disturbing_ = HasOthers(payers_, now_us);
}

void ModelPool::EndLoad(int model, int64_t now_us) {
  const int64_t took_us = now_us - load_began_us_;
  std::optional<int64_t>& lately_us = entry(model).load_us;
  lately_us = (lately_us.value_or(took_us) + took_us) / 2;
  if (is_disturbing_ || HasOthers(payers_, now_us)) {
    ChargeAll(payers_, took_us, model, now_us);
  }
  for (const std::string& client : std::exchange(payers_, {})) debts_.Serve(client, now_us);
}

}  // namespace hearth
