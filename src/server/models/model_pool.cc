// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hearth {
namespace {

double Gib(int64_t bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); }

// Since when somebody has been waiting for it; none: nobody.
std::optional<int64_t> WaitsSince(const PoolEntry& entry) {
  std::optional<int64_t> since = entry.wanted_us;
  if (!entry.waiters.empty()) {
    since =
        std::min(since.value_or(entry.waiters.front().since_us), entry.waiters.front().since_us);
  }
  return since;
}

bool HoldsMemory(const PoolEntry& entry) { return entry.state != ModelState::kOffered; }

bool IsExpired(const PoolEntry& entry, int64_t now_us) {
  return !entry.is_pinned && entry.expires_us >= 0 && entry.expires_us <= now_us;
}

}  // namespace

const char* NameOf(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
      return "loaded";
    case ModelState::kUnloading:
      return "unloading";
    case ModelState::kOffered:
      break;
  }
  return "offered";
}

int ModelPool::Offer(std::string name, bool is_pinned, int64_t keep_alive_us) {
  PoolEntry& added = entries_.emplace_back();
  added.name = std::move(name);
  added.is_pinned = is_pinned;
  added.keep_alive_us = keep_alive_us;
  if (is_pinned) added.wanted_us = 0;
  return size() - 1;
}

int64_t ModelPool::used_bytes() const {
  int64_t sum = 0;
  for (const PoolEntry& each : entries_) sum += HoldsMemory(each) ? *each.bytes : 0;
  return sum;
}

int ModelPool::num_waiting() const {
  size_t sum = 0;
  for (const PoolEntry& each : entries_) sum += each.waiters.size();
  return static_cast<int>(sum);
}

int64_t ModelPool::PinnedBytes(int except) const {
  int64_t sum = 0;
  for (int i = 0; i < size(); ++i) {
    if (i != except && at(i).is_pinned) sum += at(i).bytes.value_or(0);
  }
  return sum;
}

// Nothing here asks for memory but `out`: the client's use was noted when it asked.
void ModelPool::GrantAll(int64_t now_us, PoolActions& out) {
  for (int i = 0; i < size(); ++i) {
    PoolEntry& each = entry(i);
    if (each.state != ModelState::kLoaded || each.is_leaving || each.is_claimed) continue;
    while (!each.waiters.empty()) {
      const PoolEntry::Waiter& waiter = each.waiters.front();
      out.push_back({PoolAction::Kind::kGrant, i, waiter.ticket});
      PoolEntry::Use& use = each.clients.at(waiter.client);
      --use.num_waiting;
      ++use.num_users;
      ++each.num_users;
      use.last_us = each.last_use_us = now_us;
      each.expires_us = -1;
      if (waiter.keep_alive_us) each.keep_alive_us = *waiter.keep_alive_us;
      each.waiters.pop_front();
    }
  }
}

void ModelPool::RefuseAll(int model, const Status& why, PoolActions& out) {
  PoolEntry& refused = entry(model);
  for (const PoolEntry::Waiter& waiter : std::exchange(refused.waiters, {})) {
    --refused.clients.at(waiter.client).num_waiting;
    out.push_back({PoolAction::Kind::kRefuse, model, waiter.ticket, why});
  }
}

void ModelPool::Ask(int model, const std::string& client, ModelTicket ticket,
                    std::optional<int64_t> keep_alive_us, int64_t now_us, PoolActions& out) {
  if (is_closed_) {
    const Status why(Code::kCancelled, "the server is shutting down");
    out.push_back({PoolAction::Kind::kRefuse, model, ticket, why});
    return;
  }
  if (num_waiting() >= options_.max_waiting) {
    // How many there are is others' business.
    const Status why = Error(Code::kExhausted, "too many requests are waiting for models");
    out.push_back({PoolAction::Kind::kRefuse, model, ticket, why});
    return;
  }
  // So that one client's crowd does not keep everybody else's requests from waiting at all.
  if (const int own = NumWaiting(client); own >= options_.max_waiting / 2) {
    const Status why =
        Error(Code::kExhausted, "%d requests of yours are waiting for models already", own);
    out.push_back({PoolAction::Kind::kRefuse, model, ticket, why});
    return;
  }
  PoolEntry& asked = entry(model);
  PoolEntry::Use& use = UseOf(asked, client);
  asked.waiters.push_back({ticket, now_us, keep_alive_us, client});
  ++use.num_waiting;
  Settle(now_us, out);
}

void ModelPool::Forget(ModelTicket ticket, int64_t now_us, PoolActions& out) {
  for (PoolEntry& each : entries_) {
    std::erase_if(each.waiters, [&](const auto& waiter) {
      if (waiter.ticket != ticket) return false;
      --each.clients.at(waiter.client).num_waiting;
      return true;
    });
  }
  Settle(now_us, out);
}

void ModelPool::Release(int model, const std::string& client, int64_t now_us, PoolActions& out) {
  PoolEntry& used = entry(model);
  const auto use = used.clients.find(client);
  HEARTH_CHECK(used.num_users > 0 && use != used.clients.end() && use->second.num_users > 0);
  --use->second.num_users;
  use->second.last_us = used.last_use_us = now_us;
  if (--used.num_users == 0 && used.keep_alive_us >= 0) {
    used.expires_us = now_us + used.keep_alive_us;
  }
  Settle(now_us, out);
}

void ModelPool::OnMeasured(int model, Result<int64_t> bytes, int64_t now_us, PoolActions& out) {
  is_busy_ = false;
  PoolEntry& measured = entry(model);
  measured.was_measured = true;
  measured.error = bytes.status().message();
  if (bytes.ok()) {
    measured.bytes = *bytes;
  } else {
    measured.wanted_us.reset();
    RefuseAll(model, bytes.status(), out);
  }
  Settle(now_us, out);
}

void ModelPool::OnLoaded(int model, const Status& status, int64_t now_us, PoolActions& out) {
  is_busy_ = false;
  PoolEntry& loaded = entry(model);
  HEARTH_CHECK(loaded.state == ModelState::kLoading);
  EndLoad(model, now_us);
  loaded.error = status.message();
  loaded.wanted_us.reset();
  loaded.state = status.ok() ? ModelState::kLoaded : ModelState::kOffered;
  loaded.last_use_us = loaded.loaded_us = now_us;
  if (!status.ok()) {
    loaded.bytes.reset();  // the file may be another one the next time
    RefuseAll(model, status, out);
  } else if (loaded.keep_alive_us >= 0 && loaded.waiters.empty()) {
    // Those who waited may have gone.
    loaded.expires_us = now_us + loaded.keep_alive_us;
  }
  Settle(now_us, out);
}

void ModelPool::OnUnloaded(int model, int64_t now_us, PoolActions& out) {
  is_busy_ = false;
  PoolEntry& gone = entry(model);
  HEARTH_CHECK(gone.state == ModelState::kUnloading);
  gone.state = ModelState::kOffered;
  gone.is_leaving = gone.is_claimed = gone.is_contested = false;
  gone.expires_us = -1;
  Settle(now_us, out);
}

void ModelPool::Load(int model, std::optional<bool> pin, std::optional<int64_t> keep_alive_us,
                     int64_t now_us, PoolActions& out) {
  PoolEntry& wanted = entry(model);
  if (pin) wanted.is_pinned = *pin;
  if (wanted.is_pinned) wanted.is_leaving = false;
  if (keep_alive_us) wanted.keep_alive_us = *keep_alive_us;
  if (!HoldsMemory(wanted) && !is_closed_) wanted.wanted_us = now_us;
  if (wanted.is_idle() && (keep_alive_us || pin)) {
    wanted.expires_us = wanted.keep_alive_us < 0 ? -1 : now_us + wanted.keep_alive_us;
  }
  Settle(now_us, out);
}

Status ModelPool::Unload(int model, int64_t now_us, PoolActions& out) {
  PoolEntry& leaving = entry(model);
  if (leaving.is_pinned) {
    return Error(Code::kInvalid, "%s is pinned, and stays", Quoted(leaving.name).c_str());
  }
  leaving.wanted_us.reset();
  if (leaving.state == ModelState::kLoaded || leaving.state == ModelState::kLoading) {
    leaving.is_leaving = true;
  }
  Settle(now_us, out);
  return Status();
}

void ModelPool::Close(int64_t now_us, PoolActions& out) {
  is_closed_ = true;
  for (int i = 0; i < size(); ++i) {
    entry(i).wanted_us.reset();
    RefuseAll(i, Status(Code::kCancelled, "the server is shutting down"), out);
  }
  Settle(now_us, out);
}

// What can never be loaded is told so at once.
void ModelPool::DropHopeless(PoolActions& out) {
  for (int i = 0; i < size(); ++i) {
    PoolEntry& each = entry(i);
    if (HoldsMemory(each) || !each.bytes || !WaitsSince(each)) continue;
    const int64_t pinned = PinnedBytes(i);
    if (*each.bytes <= options_.budget_bytes - pinned) continue;
    const Status why =
        Error(Code::kExhausted,
              "%s needs %.2f GiB, and there are %.2f GiB for all models, of which %.2f GiB are "
              "pinned",
              Quoted(each.name).c_str(), Gib(*each.bytes), Gib(options_.budget_bytes), Gib(pinned));
    each.error = why.message();
    each.wanted_us.reset();
    each.is_pinned = false;
    RefuseAll(i, why, out);
  }
}

bool ModelPool::IsInLine(int model) const {
  return !HoldsMemory(at(model)) && WaitsSince(at(model)).has_value();
}

// Models that somebody waits for and that are not there. First the one that others leave for
// already; then those that have waited as long as anybody has to, the oldest first; then whose
// clients owe least, of equals whoever waits longest.
std::vector<int> ModelPool::InLine(int64_t now_us) const {
  struct Place {
    int rank = 0;
    int64_t owed_us = 0, since_us = 0;
    int model = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  for (int i = 0; i < size(); ++i) {
    if (!IsInLine(i)) continue;
    const bool is_due = now_us - SinceUs(i, now_us) >= LongestUs(i);
    const int rank = i == turn_ ? 0 : is_due ? 1 : 2;
    places.push_back({rank, is_due ? 0 : OwedUs(i, now_us), *WaitsSince(at(i)), i});
  }
  std::sort(places.begin(), places.end());
  std::vector<int> line;
  for (const Place& each : places) line.push_back(each.model);
  return line;
}

// Who leaves so that `bytes` more are free: idle ones first, then those whose room is claimed
// already, so that the choice stays while they finish; of equals who was used least lately. Fewer
// than enough when others keep theirs.
std::vector<int> ModelPool::VictimsFor(int model, int64_t bytes, int64_t now_us) const {
  std::vector<int> order;
  for (int i = 0; i < size(); ++i) {
    if (at(i).state != ModelState::kLoaded || at(i).is_pinned) continue;
    if (!KeptUntilUs(i, model, now_us)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const PoolEntry &x = at(a), &y = at(b);
    if (x.is_idle() != y.is_idle()) return x.is_idle();
    if (x.is_claimed != y.is_claimed) return x.is_claimed;
    return x.last_use_us < y.last_use_us;
  });
  std::vector<int> victims;
  for (const int each : order) {
    if (bytes <= 0) break;
    bytes -= *at(each).bytes;
    victims.push_back(each);
  }
  if (bytes > 0) victims.clear();
  return victims;
}

// The next thing to do for a model in line; none: it must wait.
std::optional<PoolAction> ModelPool::MakeRoom(int model, int64_t now_us, Before& before) {
  const PoolEntry& next = at(model);
  if (!next.bytes) return PoolAction{PoolAction::Kind::kMeasure, model};
  const int64_t needed = used_bytes() + *next.bytes - options_.budget_bytes;
  if (needed <= 0) return PoolAction{PoolAction::Kind::kLoad, model};
  const int64_t owed_us = OwedUs(model, now_us);
  if (owed_us > before.least_owed_us) return std::nullopt;
  const std::vector<int> victims = VictimsFor(model, needed, now_us);
  if (victims.empty()) return std::nullopt;  // others keep their room, for a bounded time
  const bool all_idle =
      std::all_of(victims.begin(), victims.end(), [&](int each) { return at(each).is_idle(); });
  const bool is_old = now_us - *WaitsSince(next) >= options_.patience_us;
  if (!all_idle && !is_old) {
    before.least_owed_us = std::min(before.least_owed_us, owed_us);
    return std::nullopt;
  }
  before.is_blocked = true;
  Claim(model, victims, all_idle, now_us);
  if (at(victims.front()).is_idle()) {
    return PoolAction{PoolAction::Kind::kUnload, victims.front()};
  }
  return std::nullopt;
}

std::optional<PoolAction> ModelPool::NextJob(int64_t now_us) {
  Before before;
  const std::vector<int> line = InLine(now_us);
  for (const int model : line) {
    if (before.is_blocked) break;
    auto job = MakeRoom(model, now_us, before);
    if (job) return job;
  }
  for (int i = 0; i < size(); ++i) {
    if (at(i).is_idle() && (at(i).is_leaving || IsExpired(at(i), now_us))) {
      return PoolAction{PoolAction::Kind::kUnload, i};
    }
  }
  // Nothing else to do: what models are, for those who list them.
  for (int i = 0; i < size(); ++i) {
    if (!at(i).was_measured && line.empty()) return PoolAction{PoolAction::Kind::kMeasure, i};
  }
  return std::nullopt;
}

void ModelPool::Begin(const PoolAction& job, int64_t now_us) {
  is_busy_ = true;
  PoolEntry& subject = entry(job.model);
  if (job.kind == PoolAction::Kind::kLoad) {
    BeginLoad(job.model, now_us);
    subject.state = ModelState::kLoading;
  }
  if (job.kind == PoolAction::Kind::kUnload) {
    subject.state = ModelState::kUnloading;
    subject.is_prepaid = subject.is_contested;
    subject.num_taken += subject.is_contested ? 1 : 0;
  }
}

void ModelPool::Settle(int64_t now_us, PoolActions& out) {
  settled_us_ = now_us;
  DropHopeless(out);
  // Claims are for one model in line; when it is not there any more, they lapse.
  if (turn_ < 0 || !IsInLine(turn_)) DropClaims();
  // Before anybody is chosen to leave: who is asked for is not idle.
  GrantAll(now_us, out);
  if (is_busy_ || is_closed_) return;
  const std::optional<PoolAction> job = NextJob(now_us);
  if (job) {
    Begin(*job, now_us);
    out.push_back(*job);
  }
  // Some claims may have gone to others.
  GrantAll(now_us, out);
}

int64_t ModelPool::NextTickUs() const {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  int64_t next = kNever;
  if (is_closed_ || is_busy_) return -1;
  // What was due when all was settled has been seen to, and waits for another event.
  const auto consider = [&](int64_t due_us) {
    if (due_us > settled_us_) next = std::min(next, due_us);
  };
  for (const int model : InLine(settled_us_)) {
    consider(*WaitsSince(at(model)) + options_.patience_us);
    for (int i = 0; i < size(); ++i) {
      if (at(i).state != ModelState::kLoaded || at(i).is_pinned) continue;
      if (const auto until_us = KeptUntilUs(i, model, settled_us_)) consider(*until_us);
    }
  }
  for (const PoolEntry& each : entries_) {
    if (each.is_idle() && !each.is_pinned && each.expires_us >= 0) consider(each.expires_us);
  }
  return next == kNever ? -1 : next;
}

}  // namespace hearth
