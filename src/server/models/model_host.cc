// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_host.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "engine/clock.h"
#include "engine/merge_snapshots.h"
#include "server/models/model_pool.h"
#include "server/turns/within_memory.h"

namespace hearth {
namespace {

using Kind = PoolAction::Kind;

int64_t NowUs() { return SteadyClock().now_us(); }

int64_t KeepAliveUs(double seconds) {
  return seconds < 0 ? -1 : static_cast<int64_t>(seconds * 1e6);
}

// What the pool said, in the words of HTTP.
ApiError Refusal(const std::string& name, const Status& why) {
  if (why.code() == Code::kCancelled) return ShuttingDown();
  ApiError error;
  error.status = 503;
  error.type = "server_error";
  error.code = "model_not_loaded";
  error.param = "model";
  error.message = "model " + Quoted(name) + " cannot be loaded: " + why.message();
  return error;
}

// Opening a model takes memory of all sizes, and nobody answers for the thread that does it:
// without memory the model does not come, and the server stays.
template <typename T>
Result<T> OpenWithinMemory(const std::function<Result<T>()>& open) {
  try {
    return open();
  } catch (const std::bad_alloc&) {
    return Error(Code::kExhausted, "there is not enough memory for it now");
  }
}

}  // namespace

struct ModelHost::Impl : std::enable_shared_from_this<ModelHost::Impl> {
  struct Use;
  struct Slot {
    HostedModel offer;
    std::unique_ptr<LoadedModel> loaded = {};
    std::shared_ptr<const ServedModel> known = {};
    uint64_t num_loads = 0, num_unloads = 0, num_failures = 0;
    double load_s = 0;
  };

  Impl(ModelOpener& o, const HostOptions& given)
      : opener(o), options(given), pool({.budget_bytes = given.budget_bytes}) {}

  // Calls that must be made without the lock.
  using Calls = std::vector<std::function<void()>>;
  void Run();
  void DoJob(const PoolAction& job);
  void Measure(const PoolAction& job);
  void Load(const PoolAction& job);
  void Unload(const PoolAction& job);
  void Obey(PoolActions actions, Calls& calls) HEARTH_REQUIRES(mu);
  // For a use that the pool has granted. Null, and the use is given back, when there is no memory.
  HeldModel Lease(int model, const std::string& client, PoolActions& out) HEARTH_REQUIRES(mu);
  void Release(int model, const std::string& client);
  // -1: nobody is called that.
  int IndexOf(const std::string& name) const HEARTH_REQUIRES(mu);
  ApiResult<int> Find(const std::string& name) const HEARTH_REQUIRES(mu);
  ModelListing ListingOf(int model) const HEARTH_REQUIRES(mu);
  // Tells the pool, and does what it says. `event` is called with the lock.
  void Tell(const std::function<void(PoolActions&)>& event) {
    Calls calls;
    {
      const MutexLock lock(mu);
      PoolActions out;
      event(out);
      Obey(std::move(out), calls);
    }
    changed.NotifyAll();
    for (const auto& call : calls) call();
  }

  ModelOpener& opener;
  const HostOptions options;
  mutable Mutex mu;
  CondVar changed;
  ModelPool pool HEARTH_GUARDED_BY(mu);
  std::vector<Slot> slots HEARTH_GUARDED_BY(mu);
  using Waiting = std::pair<std::string, Then>;  // who, and for what
  std::unordered_map<Ticket, Waiting> waiting HEARTH_GUARDED_BY(mu);
  std::deque<PoolAction> jobs HEARTH_GUARDED_BY(mu);
  Ticket last_ticket HEARTH_GUARDED_BY(mu) = 0;
  EngineSnapshot gone HEARTH_GUARDED_BY(mu);  // sums of engines that are no more
  bool is_closed HEARTH_GUARDED_BY(mu) = false;
  bool must_settle HEARTH_GUARDED_BY(mu) = false;  // somebody had no memory for it
  std::thread loader;
};

// A lease, and what gives it back. Not a deleter: one is called, with the lock held, when there is
// no memory to keep it.
struct ModelHost::Impl::Use {
  Use(std::shared_ptr<Impl> s, int m, std::string c, LoadedModel& loaded)
      : self(std::move(s)),
        model(m),
        client(std::move(c)),
        lease{loaded.engine(), loaded.model()} {}
  ~Use() { self->Release(model, client); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  const std::shared_ptr<Impl> self;
  const int model;
  const std::string client;
  const ModelLease lease;
};

HeldModel ModelHost::Impl::Lease(int model, const std::string& client, PoolActions& out) {
  try {
    LoadedModel& loaded = *slots[static_cast<size_t>(model)].loaded;
    const auto use = std::make_shared<const Use>(shared_from_this(), model, client, loaded);
    return {use, &use->lease};
  } catch (const std::bad_alloc&) {
    pool.Release(model, client, NowUs(), out);
    return nullptr;
  }
}

// The end of a request, which cannot fail: what there is no memory for now the loader does.
void ModelHost::Impl::Release(int model, const std::string& client) {
  try {
    Tell([&](PoolActions& out) HEARTH_REQUIRES(mu) { pool.Release(model, client, NowUs(), out); });
  } catch (const std::bad_alloc&) {
    {
      const MutexLock lock(mu);
      must_settle = true;
    }
    changed.NotifyAll();
  }
}

void ModelHost::Impl::Obey(PoolActions actions, Calls& calls) {
  for (size_t i = 0; i < actions.size(); ++i) {
    const PoolAction& action = actions[i];  // until something is added
    if (action.kind <= Kind::kUnload) {
      jobs.push_back(action);
      continue;
    }
    const auto waits = waiting.find(action.ticket);
    if (waits == waiting.end()) {
      // Not in line yet: Ask looks at the action itself.
      continue;
    }
    auto [client, tell] = std::move(waits->second);
    waiting.erase(waits);
    if (action.kind == Kind::kGrant) {
      ApiResult<HeldModel> held = Lease(action.model, client, actions);
      if (*held == nullptr) held = OutOfMemory();
      calls.push_back([then = std::move(tell), held = std::move(held)] { then(held); });
    } else {
      const ApiError error =
          Refusal(slots[static_cast<size_t>(action.model)].offer.name, action.why);
      calls.push_back([then = std::move(tell), error] { then(error); });
    }
  }
}

void ModelHost::Impl::Run() {
  while (true) {
    PoolAction job;
    bool has_job = false;
    {
      const MutexLock lock(mu);
      const int64_t tick_us = pool.NextTickUs();
      const int64_t wait_us = tick_us < 0 ? 3'600'000'000 : std::max<int64_t>(0, tick_us - NowUs());
      changed.WaitFor(mu, std::chrono::microseconds(wait_us), [&]() HEARTH_REQUIRES(mu) {
        return is_closed || must_settle || !jobs.empty() || pool.NextTickUs() != tick_us;
      });
      if (is_closed) return;
      has_job = !jobs.empty();
      if (has_job) {
        job = jobs.front();
        jobs.pop_front();
      } else if (!std::exchange(must_settle, false) && (tick_us < 0 || NowUs() < tick_us)) {
        continue;
      }
    }
    if (has_job) {
      DoJob(job);
    } else {
      Tell([&](PoolActions& out) HEARTH_REQUIRES(mu) { pool.Tick(NowUs(), out); });
    }
  }
}

void ModelHost::Impl::DoJob(const PoolAction& job) {
  if (job.kind == Kind::kMeasure) return Measure(job);
  if (job.kind == Kind::kLoad) return Load(job);
  Unload(job);
}

void ModelHost::Impl::Measure(const PoolAction& job) {
  std::string name;
  {
    const MutexLock lock(mu);
    name = slots[static_cast<size_t>(job.model)].offer.name;
  }
  Result<MeasuredModel> measured =
      OpenWithinMemory<MeasuredModel>([&] { return opener.Measure(name); });
  Tell([&](PoolActions& out) HEARTH_REQUIRES(mu) {
    if (!measured.ok()) return pool.OnMeasured(job.model, measured.status(), NowUs(), out);
    slots[static_cast<size_t>(job.model)].known =
        std::make_shared<const ServedModel>(std::move(measured->known));
    pool.OnMeasured(job.model, measured->bytes, NowUs(), out);
  });
}

void ModelHost::Impl::Load(const PoolAction& job) {
  std::string name;
  int64_t bytes = 0;
  {
    const MutexLock lock(mu);
    name = slots[static_cast<size_t>(job.model)].offer.name;
    bytes = *pool.at(job.model).bytes;
  }
  const int64_t began_us = NowUs();
  Result<std::unique_ptr<LoadedModel>> loaded =
      OpenWithinMemory<std::unique_ptr<LoadedModel>>([&] { return opener.Load(name, bytes); });
  Tell([&](PoolActions& out) HEARTH_REQUIRES(mu) {
    Slot& slot = slots[static_cast<size_t>(job.model)];
    slot.load_s += static_cast<double>(NowUs() - began_us) * 1e-6;
    ++(loaded.ok() ? slot.num_loads : slot.num_failures);
    if (loaded.ok()) {
      ServedModel known = (*loaded)->model();
      known.tokenizer = nullptr;
      known.format = nullptr;
      known.masks = nullptr;
      slot.known = std::make_shared<const ServedModel>(std::move(known));
      slot.loaded = *std::move(loaded);
      pool.OnLoaded(job.model, Status(), NowUs(), out);
    } else {
      pool.OnLoaded(job.model, loaded.status(), NowUs(), out);
    }
  });
}

void ModelHost::Impl::Unload(const PoolAction& job) {
  std::unique_ptr<LoadedModel> leaving;
  {
    const MutexLock lock(mu);
    Slot& slot = slots[static_cast<size_t>(job.model)];
    leaving = std::move(slot.loaded);
    ++slot.num_unloads;
    AddCounts(gone, *leaving->engine().snapshot());
  }
  leaving.reset();
  Tell([&](PoolActions& out) HEARTH_REQUIRES(mu) { pool.OnUnloaded(job.model, NowUs(), out); });
}

int ModelHost::Impl::IndexOf(const std::string& name) const {
  for (size_t i = 0; i < slots.size(); ++i) {
    const HostedModel& offer = slots[i].offer;
    const bool is_alias =
        std::any_of(offer.aliases.begin(), offer.aliases.end(),
                    [&](const std::string& alias) { return IsSameModel(name, alias); });
    if (is_alias || IsSameModel(name, offer.name)) return static_cast<int>(i);
  }
  return -1;
}

ApiResult<int> ModelHost::Impl::Find(const std::string& name) const {
  if (name.empty() && slots.size() == 1) return 0;
  const int found = IndexOf(name);
  if (found >= 0) return found;
  std::vector<std::string> names;
  for (const Slot& slot : slots) {
    names.push_back(slot.offer.name);
    names.insert(names.end(), slot.offer.aliases.begin(), slot.offer.aliases.end());
  }
  if (!name.empty()) return NoSuchModel(name, names);
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 8); ++i) {
    list += (i > 0 ? ", " : "") + names[i];
  }
  return BadField("model", "is missing: this server has several models: " + list);
}

ModelListing ModelHost::Impl::ListingOf(int model) const {
  const Slot& slot = slots[static_cast<size_t>(model)];
  const PoolEntry& entry = pool.at(model);
  ModelListing out{slot.offer.name, slot.offer.aliases, NameOf(entry.state), entry.is_pinned};
  out.planned_bytes = entry.bytes.value_or(0);
  out.file_bytes = slot.offer.file_bytes;
  out.error = entry.error;
  out.known = slot.known;
  if (entry.state == ModelState::kLoaded && entry.expires_us >= 0 && !entry.is_pinned) {
    out.expires_in_s = static_cast<double>(std::max<int64_t>(0, entry.expires_us - NowUs())) * 1e-6;
  }
  return out;
}

ModelHost::ModelHost(const std::vector<HostedModel>& models, ModelOpener& opener,
                     const HostOptions& options)
    : impl_(std::make_shared<Impl>(opener, options)) {
  impl_->Tell([&](PoolActions& out) HEARTH_REQUIRES(impl_->mu) {
    for (const HostedModel& each : models) {
      impl_->slots.push_back({each});
      impl_->pool.Offer(each.name, each.is_pinned,
                        KeepAliveUs(each.keep_alive_s.value_or(options.keep_alive_s)));
    }
    impl_->pool.Tick(NowUs(), out);
  });
  impl_->loader = std::thread([impl = impl_.get()] { impl->Run(); });
}

ModelHost::~ModelHost() {
  Drain(0);
  std::vector<std::unique_ptr<LoadedModel>> leaving;
  const MutexLock lock(impl_->mu);
  for (Impl::Slot& slot : impl_->slots) leaving.push_back(std::move(slot.loaded));
}

Status ModelHost::WaitForPinned() {
  const MutexLock lock(impl_->mu);
  const auto is_settled = [this]() HEARTH_REQUIRES(impl_->mu) {
    for (int i = 0; i < impl_->pool.size(); ++i) {
      const PoolEntry& entry = impl_->pool.at(i);
      const bool wants = impl_->slots[static_cast<size_t>(i)].offer.is_pinned;
      if (wants && entry.error.empty() && entry.state != ModelState::kLoaded) return false;
    }
    return true;
  };
  impl_->changed.Wait(impl_->mu, is_settled);
  for (int i = 0; i < impl_->pool.size(); ++i) {
    const Impl::Slot& slot = impl_->slots[static_cast<size_t>(i)];
    const PoolEntry& entry = impl_->pool.at(i);
    if (slot.offer.is_pinned && !entry.error.empty()) {
      return Error(Code::kExhausted, "--pin %s: %s", entry.name.c_str(), entry.error.c_str());
    }
  }
  return Status();
}

ApiResult<ModelSource::Answer> ModelHost::Ask(const ModelAsk& ask, Then then) {
  Impl::Calls calls;
  Answer answer;
  std::optional<ApiError> refusal;
  {
    const MutexLock lock(impl_->mu);
    HEARTH_ASSIGN(const int model, impl_->Find(ask.name));
    const PoolEntry& entry = impl_->pool.at(model);
    const bool is_there = entry.state == ModelState::kLoaded && entry.waiters.empty() &&
                          !entry.is_claimed && !entry.is_leaving;
    if (then == nullptr && !is_there) return answer;
    std::optional<int64_t> keep_alive_us;
    if (ask.keep_alive_s) keep_alive_us = KeepAliveUs(*ask.keep_alive_s);
    const Ticket ticket = ++impl_->last_ticket;
    PoolActions out;
    out.reserve(8);  // a use that is granted must not be lost for want of memory to say so
    impl_->pool.Ask(model, ask.client, ticket, keep_alive_us, NowUs(), out);
    answer.ticket = ticket;
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i].ticket != ticket) continue;
      if (out[i].kind == Kind::kRefuse) refusal = Refusal(entry.name, out[i].why);
      if (out[i].kind != Kind::kGrant) continue;
      answer.now = impl_->Lease(model, ask.client, out);
      if (answer.now == nullptr) refusal = OutOfMemory();
    }
    if (answer.now == nullptr && !refusal) impl_->waiting[ticket] = {ask.client, std::move(then)};
    impl_->Obey(std::move(out), calls);
  }
  impl_->changed.NotifyAll();
  for (const auto& call : calls) call();
  if (refusal) return *refusal;
  return answer;
}

void ModelHost::Forget(Ticket ticket) {
  Then forgotten;  // destroyed without the lock: it may hold much
  impl_->Tell([&](PoolActions& out) HEARTH_REQUIRES(impl_->mu) {
    const auto waits = impl_->waiting.find(ticket);
    if (waits == impl_->waiting.end()) return;
    forgotten = std::move(waits->second.second);
    impl_->waiting.erase(waits);
    impl_->pool.Forget(ticket, NowUs(), out);
  });
}

ApiStatus ModelHost::Check(const std::string& name) const {
  const MutexLock lock(impl_->mu);
  return impl_->Find(name).status();
}

std::vector<ModelListing> ModelHost::List() const {
  const MutexLock lock(impl_->mu);
  std::vector<ModelListing> out;
  for (int i = 0; i < impl_->pool.size(); ++i) out.push_back(impl_->ListingOf(i));
  return out;
}

ApiStatus ModelHost::Keep(const std::string& name, std::optional<bool> pin,
                          std::optional<double> keep_alive_s) {
  ApiStatus status;
  impl_->Tell([&](PoolActions& out) HEARTH_REQUIRES(impl_->mu) {
    ApiResult<int> model = impl_->Find(name);
    if (!model.ok()) {
      status = std::move(model).status();
      return;
    }
    std::optional<int64_t> keep_alive_us;
    if (keep_alive_s) keep_alive_us = KeepAliveUs(*keep_alive_s);
    impl_->pool.Load(*model, pin, keep_alive_us, NowUs(), out);
  });
  return status;
}

ApiStatus ModelHost::Unload(const std::string& name) {
  ApiStatus status;
  impl_->Tell([&](PoolActions& out) HEARTH_REQUIRES(impl_->mu) {
    ApiResult<int> model = impl_->Find(name);
    if (!model.ok()) {
      status = std::move(model).status();
      return;
    }
    const Status done = impl_->pool.Unload(*model, NowUs(), out);
    if (done.ok()) return;
    ApiError error;
    error.status = 409;
    error.code = "model_pinned";
    error.param = "model";
    error.message = done.message() + "; load it with \"pin\": false first";
    status = error;
  });
  return status;
}

std::string ModelHost::version() const { return impl_->options.version; }

std::shared_ptr<const EngineSnapshot> ModelHost::snapshot() const {
  const MutexLock lock(impl_->mu);
  auto sum = std::make_shared<EngineSnapshot>(impl_->gone);
  sum->at_us = NowUs();
  sum->is_draining = impl_->is_closed;
  for (const Impl::Slot& slot : impl_->slots) {
    if (slot.loaded != nullptr) {
      AddSnapshot(*sum, *slot.loaded->engine().snapshot(), slot.offer.name);
    }
  }
  return sum;
}

HostCounts ModelHost::counts() const {
  const MutexLock lock(impl_->mu);
  HostCounts out{impl_->pool.budget_bytes(), impl_->pool.used_bytes(), impl_->pool.num_waiting(),
                 impl_->pool.num_deferred()};
  for (int i = 0; i < impl_->pool.size(); ++i) {
    const Impl::Slot& slot = impl_->slots[static_cast<size_t>(i)];
    const PoolEntry& entry = impl_->pool.at(i);
    const bool holds = entry.state != ModelState::kOffered;
    out.models.push_back({entry.name, NameOf(entry.state), entry.num_users, slot.num_loads,
                          slot.num_unloads, slot.num_failures, slot.load_s,
                          holds ? *entry.bytes : 0, entry.num_taken});
  }
  return out;
}

void ModelHost::Drain(int64_t bound_us) {
  const int64_t until_us = NowUs() + bound_us;
  impl_->Tell([&](PoolActions& out) HEARTH_REQUIRES(impl_->mu) {
    impl_->is_closed = true;
    impl_->pool.Close(NowUs(), out);
  });
  // What it is opening must be opened before it can be closed.
  if (impl_->loader.joinable()) impl_->loader.join();
  std::vector<LoadedModel*> loaded;
  {
    const MutexLock lock(impl_->mu);
    for (const Impl::Slot& slot : impl_->slots) {
      if (slot.loaded != nullptr) loaded.push_back(slot.loaded.get());
    }
  }
  // Nobody loads or unloads any more; nobody is let in, so all drain at once.
  for (LoadedModel* each : loaded) {
    each->engine().Drain(std::max<int64_t>(0, until_us - NowUs()));
  }
}

}  // namespace hearth
