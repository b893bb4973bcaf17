// SPDX-License-Identifier: Apache-2.0
#include "platform/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/thread_name.h"
#include "platform/topology.h"

namespace hearth {
namespace {

// A pause takes some 40 ns on recent cores, so this spins for about 100 us: longer than the
// serial work between two loops of a step, shorter than anyone would notice at the end of one.
constexpr int kSpins = 2500;
// A loop that is waited for this long, and longer than the caller's own share took, has lost a
// worker to another process. Waking a sleeper costs some 40 us, so after a single such loop the
// pool must spin again soon: a third of a step of gpt-oss later.
constexpr auto kPreempted = std::chrono::milliseconds(1);
constexpr int kCalmLoops = 64;

void Pin(pthread_t thread, int cpu) {
  if (cpu >= CPU_SETSIZE) return;  // such a machine is left to the system
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);  // a refusal costs speed only
}

int64_t Nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// Waits until `value` is no longer `old`: spinning first, then asleep.
template <class T>
void WaitWhile(const std::atomic<T>& value, T old, int num_spins) {
  for (int i = 0; i < num_spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    _mm_pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_spins_(kSpins) {
  HEARTH_CHECK(num_threads >= 1);
  pieces_ = std::make_unique<Pieces[]>(static_cast<size_t>(num_threads));
  busy_ = std::make_unique<Busy[]>(static_cast<size_t>(num_threads));
  if (num_threads == 1) return;
  const std::vector<int> cpus = WorkerCpus(MachineCpus(), AllowedCpus(), num_threads);
  const bool pins = !cpus.empty();
  if (!pins) num_spins_ = 0;  // more threads than processors: a spinning one blocks a working one
  for (int i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this, i] { Work(i); });
    // The caller, worker 0, is left where the system puts it: it is somebody else's thread. Core 0
    // is kept free for it.
    if (pins) Pin(workers_.back().native_handle(), cpus[static_cast<size_t>(i)]);
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  workers_.clear();  // joins, while what the workers look at still exists
}

void ThreadPool::RunShare(int worker) const noexcept {
  const int64_t grains = (int64_t{n_} + grain_ - 1) / grain_;
  const auto edge = [&](int64_t w) {
    return static_cast<int>(std::min<int64_t>(n_, grains * w / size() * grain_));
  };
  const Range share{edge(worker), edge(worker + 1)};
  if (share.begin < share.end) call_(body_, share, worker);
}

ThreadPool::LoopTime ThreadPool::loop_time() const {
  LoopTime time{loops_nanoseconds_, 0};
  for (int i = 0; i < size(); ++i) time.busy += busy_[static_cast<size_t>(i)].nanoseconds;
  return time;
}

void ThreadPool::DealPieces(int count) {
  for (int64_t w = 0; w < size(); ++w) {
    const auto begin = static_cast<uint64_t>(count * w / size());
    const auto end = static_cast<uint64_t>(count * (w + 1) / size());
    pieces_[static_cast<size_t>(w)].left.store(begin | end << 32, std::memory_order_relaxed);
  }
}

int ThreadPool::TakePiece(int owner, bool first) {
  std::atomic<uint64_t>& left = pieces_[static_cast<size_t>(owner)].left;
  uint64_t seen = left.load(std::memory_order_relaxed);
  for (;;) {
    const auto begin = static_cast<uint32_t>(seen), end = static_cast<uint32_t>(seen >> 32);
    if (begin >= end) return -1;
    const uint64_t after = first ? seen + 1 : seen - (uint64_t{1} << 32);
    if (left.compare_exchange_weak(seen, after, std::memory_order_relaxed)) {
      return static_cast<int>(first ? begin : end - 1);
    }
  }
}

void ThreadPool::Work(int worker) {
  NameThread("compute");
  uint32_t seen = 0;
  for (;;) {
    WaitWhile(epoch_, seen, num_spins_.load(std::memory_order_relaxed));
    seen = epoch_.load(std::memory_order_acquire);
    if (stopping_) return;
    if (counts_time_) {
      const auto start = std::chrono::steady_clock::now();
      RunShare(worker);
      busy_[static_cast<size_t>(worker)].nanoseconds +=
          Nanoseconds(std::chrono::steady_clock::now() - start);
    } else {
      RunShare(worker);
    }
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_busy_.notify_one();
  }
}

void ThreadPool::RunErased(int n, int grain, Call call, void* body) {
  HEARTH_DCHECK(n >= 0 && grain >= 1);
  call_ = call;
  body_ = body;
  n_ = n;
  grain_ = grain;
  if (workers_.empty() || n <= grain) {
    // Too little to share: worker 0 has it all, as the split would say anyway for one grain.
    if (n > 0) call(body, Range{0, n}, 0);
    return;
  }
  num_busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  const auto start = std::chrono::steady_clock::now();
  RunShare(0);
  const auto done = std::chrono::steady_clock::now();
  for (int busy = num_busy_.load(std::memory_order_acquire); busy != 0;
       busy = num_busy_.load(std::memory_order_acquire)) {
    WaitWhile(num_busy_, busy, num_spins_.load(std::memory_order_relaxed));
  }
  if (calm_loops_ > 0 && --calm_loops_ == 0) num_spins_ = kSpins;
  const auto end = std::chrono::steady_clock::now();
  if (counts_time_) {
    busy_[0].nanoseconds += Nanoseconds(done - start);
    loops_nanoseconds_ += Nanoseconds(end - start);
  }
  const auto waited = end - done;
  if (num_spins_ > 0 && waited > kPreempted && waited > done - start) {
    calm_loops_ = kCalmLoops;
    num_spins_ = 0;
  }
}

}  // namespace hearth
