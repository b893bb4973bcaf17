// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/mutex.h"
#include "base/thread_name.h"

namespace hearth {
namespace {

// Often enough for a live view, rarely enough to cost nothing.
constexpr int64_t kSnapshotEveryUs = 20'000;
// Books are checked after this much rest, so that nobody waits for the check at the end of a burst.
constexpr int64_t kRestUs = 1'000'000;
// How long an end may take for the sake of the next start: a gigabyte, on an ordinary disk.
constexpr int64_t kStoreAtEndUs = 5'000'000;

}  // namespace

struct Engine::Impl {
  Impl(std::unique_ptr<Backend> backend, const EngineOptions& options, const WatchOptions& watch,
       std::unique_ptr<Tier> tier)
      : backend_(std::move(backend)),
        tier_(std::move(tier)),
        core_(*backend_, options, clock_, &beside_, tier_.get(), &ahead_, [this] { Publish(); }),
        watch_(watch) {
    Publish();
    loop_ = std::thread([this] { Loop(); });
    watcher_ = std::thread([this] { Watch(); });
  }

  ~Impl() {
    stop_ = true;
    core_.inbox().Wake();
    loop_.join();
    ahead_.Stop();  // it wakes the core's inbox
    {
      const MutexLock lock(mutex_);
      gone_ = true;
    }
    changed_.NotifyAll();
    watcher_.join();
  }

  void Loop() {
    NameThread("engine");
    bool checked = true;
    int64_t published_us = 0;
    while (!stop_) {
      step_since_us_ = clock_.now_us();
      const bool worked = core_.Step();
      step_since_us_ = kResting;
      ++num_steps_;
      const bool idle = core_.is_idle();
      if (clock_.now_us() - published_us >= kSnapshotEveryUs || idle) {
        Publish();
        published_us = clock_.now_us();
      }
      if (worked) {
        checked = false;
        continue;
      }
      if (idle) changed_.NotifyAll();
      const int64_t sleep_us = core_.SleepUs();
      if (sleep_us >= 0 || checked) {
        core_.inbox().Wait(sleep_us);
      } else if (!core_.inbox().Wait(kRestUs)) {
        core_.SelfCheck();
        checked = true;
      }
    }
  }

  void Publish() {
    auto snapshot = std::make_shared<EngineSnapshot>(core_.TakeSnapshot());
    snapshot->num_stalls = num_stalls_;
    const MutexLock lock(mutex_);
    snapshot_ = std::move(snapshot);
  }

  // How long the step under way has taken, if that is too long; else 0.
  int64_t StalledUs() const {
    const int64_t since_us = step_since_us_;
    if (since_us == kResting) return 0;
    const int64_t silent_us = clock_.now_us() - since_us;
    const int64_t limit_us = std::max(watch_.stall_us, 20 * Latest()->steps.p99_us);
    return silent_us > limit_us ? silent_us : 0;
  }

  // Until the tier has what was computed last, or for as long as an end may take.
  void WaitForStores(int64_t bound_us) {
    const int64_t since_us = clock_.now_us();
    core_.inbox().Wake();  // a loop that rests publishes nothing
    while (clock_.now_us() - since_us < bound_us) {
      const auto latest = Latest();
      if (!latest->tier) return;
      const bool is_new = latest->at_us >= since_us;
      if (is_new && latest->tier->storing == 0 && !latest->tier->has_more) return;
      const MutexLock lock(mutex_);
      changed_.WaitFor(mutex_, std::chrono::milliseconds(2));
    }
  }

  std::shared_ptr<const EngineSnapshot> Latest() const {
    const MutexLock lock(mutex_);
    return snapshot_;
  }

  void Watch() {
    NameThread("engine-watch");
    const auto period =
        std::chrono::microseconds(std::clamp<int64_t>(watch_.stall_us / 8, 1'000, 1'000'000));
    int64_t reported = -1;
    MutexLock lock(mutex_);
    while (!changed_.WaitFor(mutex_, period, [&]() HEARTH_REQUIRES(mutex_) { return gone_; })) {
      lock.Unlock();
      const int64_t silent_us = StalledUs();
      const int64_t steps = num_steps_;
      if (silent_us > 0 && reported != steps) {
        reported = steps;
        ++num_stalls_;
        if (watch_.on_stall) watch_.on_stall({silent_us, steps});
      }
      lock.Lock();
    }
  }

  static constexpr int64_t kResting = -1;
  SteadyClock clock_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Tier> tier_;
  SideThread beside_;
  MaskAhead ahead_{[this] { core_.inbox().Wake(); }};  // asked by the core alone
  EngineCore core_;
  const WatchOptions watch_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> step_since_us_{kResting}, num_steps_{0};
  std::atomic<uint64_t> num_stalls_{0};
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<const EngineSnapshot> snapshot_ HEARTH_GUARDED_BY(mutex_);
  bool gone_ HEARTH_GUARDED_BY(mutex_) = false;
  std::thread loop_, watcher_;
};

Engine::Engine(std::unique_ptr<Backend> backend, const EngineOptions& options,
               const WatchOptions& watch, std::unique_ptr<Tier> tier)
    : impl_(std::make_unique<Impl>(std::move(backend), options, watch, std::move(tier))) {}

Engine::~Engine() = default;

Admission Engine::Submit(Request request, std::shared_ptr<EventSink> sink) {
  return impl_->core_.Submit(std::move(request), std::move(sink));
}

void Engine::Cancel(SeqId id) { impl_->core_.Cancel(id); }

void Engine::Drain(int64_t bound_us) {
  impl_->core_.Drain(bound_us);
  while (impl_->core_.inbox().counts().num_live > 0) {
    const MutexLock lock(impl_->mutex_);
    impl_->changed_.WaitFor(impl_->mutex_, std::chrono::milliseconds(5));
  }
  impl_->WaitForStores(std::min(bound_us, kStoreAtEndUs));
}

std::shared_ptr<const EngineSnapshot> Engine::snapshot() const {
  auto latest = impl_->Latest();
  const bool is_stalled = impl_->StalledUs() > 0;
  // A loop that rests publishes nothing, and its rates would stay what they were.
  const bool is_resting = latest->load.num_running + latest->load.num_waiting == 0;
  const auto rested_s = static_cast<double>(impl_->clock_.now_us() - latest->at_us) * 1e-6;
  const double rates = latest->decode_tokens_per_s + latest->prefill_tokens_per_s;
  const bool fades = is_resting && rested_s > 0 && rates > 0;
  const bool asks_tier = is_resting && impl_->tier_ != nullptr;
  if (!is_stalled && !fades && !asks_tier) return latest;
  auto now = std::make_shared<EngineSnapshot>(*latest);
  if (is_stalled) {
    now->is_stalled = true;
    now->num_stalls = impl_->num_stalls_;
  }
  if (fades) {
    const double keep = std::exp(-rested_s / kRateSeconds);
    now->prefill_tokens_per_s *= keep;
    now->decode_tokens_per_s *= keep;
  }
  if (asks_tier)
    now->tier_parts = impl_->tier_->parts();  // its connections break and mend meanwhile
  return now;
}

}  // namespace hearth
