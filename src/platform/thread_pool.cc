// SPDX-License-Identifier: Apache-2.0
#include "platform/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/thread_name.h"
#include "platform/futex.h"
#include "platform/missing.h"
#include "platform/usage.h"

namespace hearth {
namespace {

bool Pin(pthread_t thread, int cpu) {
  const auto most = static_cast<size_t>(cpu) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(most), [](cpu_set_t* mask) { CPU_FREE(mask); });
  const size_t bytes = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(bytes, set.get());
  CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
  return pthread_setaffinity_np(thread, bytes, set.get()) == 0;
}

// A node that is this much behind has lost a processor: then reading its memory from afar is better
// than waiting.
constexpr int64_t kFarPatience = 50'000;  // nanoseconds

}  // namespace

ThreadPool::ThreadPool(WorkerPlan plan) : plan_(std::move(plan)) {
  seats_ = std::make_unique<Seat[]>(static_cast<size_t>(size()));
  if (size() == 1) return;
  const std::vector<int>& cpus = plan_.cpus;
  const bool pins = !cpus.empty();
  if (!pins) most_spin_ = 0;  // more threads than processors: a spinning one blocks a working one
  caller_spins_ = SpinBudget(most_spin_);
  for (int i = 1; i < size(); ++i) {
    workers_.emplace_back([this, i] { Work(i); });
    if (pins && !Pin(workers_.back().native_handle(), cpus[static_cast<size_t>(i)])) {
      NoteMissing("sched_setaffinity is refused: compute threads are not pinned to cores");
    }
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  loop_.fetch_add(1);  // even, and no loop: stopping_ says so
  FutexWake(loop_);
  workers_.clear();  // joins, while what the workers look at still exists
}

void ThreadPool::RunShare(int share) const {
  const int64_t grains = (int64_t{n_} + grain_ - 1) / grain_;
  const auto edge = [&](int64_t w) {
    return static_cast<int>(std::min<int64_t>(n_, grains * w / size() * grain_));
  };
  const Range range{edge(share), edge(share + 1)};
  if (range.begin < range.end) call_(body_, range, share);
}

// Its own share first. The shares of others are usually taken by then; if not, their workers are
// late.
void ThreadPool::TakeShares(int worker) noexcept {
  if (only_own_) return RunShare(worker);
  for (int i = 0; i < size(); ++i) {
    const int share = (worker + i) % size();
    std::atomic<uint64_t>& taken = seats_[static_cast<size_t>(share)].taken;
    if (taken.load(std::memory_order_relaxed) == num_loops_) continue;
    if (taken.exchange(num_loops_, std::memory_order_relaxed) != num_loops_) RunShare(share);
  }
}

ThreadPool::LoopTime ThreadPool::loop_time() const {
  LoopTime time{loops_nanoseconds_, 0};
  for (int i = 0; i < size(); ++i) time.busy += seats_[static_cast<size_t>(i)].busy_nanoseconds;
  return time;
}

void ThreadPool::DealPieces(std::span<const int> ends, int grain) {
  HEARTH_DCHECK(ends.size() == 1 || static_cast<int>(ends.size()) == plan_.num_nodes());
  piece_units_ = grain;
  groups_.clear();
  for (size_t k = 0; k < ends.size(); ++k) {
    const Range units{k > 0 ? ends[k - 1] : 0, ends[k]};
    const Range workers =
        ends.size() == 1 ? Range{0, size()} : Range{plan_.first[k], plan_.first[k + 1]};
    groups_.push_back({units, workers});
    const int64_t pieces = (units.end - units.begin + grain - 1) / grain;
    const int64_t count = workers.end - workers.begin;
    for (int64_t i = 0; i < count; ++i) {
      const auto begin = static_cast<uint64_t>(pieces * i / count);
      const auto end = static_cast<uint64_t>(pieces * (i + 1) / count);
      seats_[static_cast<size_t>(workers.begin + i)].pieces.store(begin | end << 32,
                                                                  std::memory_order_relaxed);
    }
  }
}

Range ThreadPool::NextPieceOf(Range owners, int worker) {
  const int count = owners.end - owners.begin;
  const bool is_own = worker >= owners.begin && worker < owners.end;
  for (int i = 0; i < count; ++i) {
    const int owner =
        is_own ? owners.begin + (worker - owners.begin + i) % count : owners.begin + i;
    const int piece = TakePiece(owner, owner == worker);
    if (piece < 0) continue;
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return owner >= g.workers.begin && owner < g.workers.end;
    });
    const int begin = group->units.begin + piece * piece_units_;
    return {begin, std::min(begin + piece_units_, group->units.end)};
  }
  return {0, 0};
}

bool ThreadPool::HasPieces(Range owners) const {
  for (int w = owners.begin; w < owners.end; ++w) {
    const uint64_t left = seats_[static_cast<size_t>(w)].pieces.load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(left) < static_cast<uint32_t>(left >> 32)) return true;
  }
  return false;
}

Range ThreadPool::NextPiece(int worker) {
  for (const Group& group : groups_) {
    if (worker < group.workers.begin || worker >= group.workers.end) continue;
    const Range piece = NextPieceOf(group.workers, worker);
    if (piece.begin < piece.end || groups_.size() == 1) return piece;
  }
  // The caller's share alone looks after the others: it has to wait for them anyway.
  if (worker != 0) return {0, 0};
  const int64_t start = SteadyNanoseconds();
  const Range all{0, size()};
  while (HasPieces(all) && SteadyNanoseconds() - start < kFarPatience) _mm_pause();
  return NextPieceOf(all, worker);
}

int ThreadPool::TakePiece(int owner, bool first) {
  std::atomic<uint64_t>& left = seats_[static_cast<size_t>(owner)].pieces;
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

uint32_t ThreadPool::WaitForLoop(uint32_t seen, SpinBudget& spins) {
  uint32_t now = 0;
  const auto has_new = [&] {
    now = loop_.load();
    return (now & ~1u) != seen;
  };
  if (!spins.Spin(has_new)) {
    const int64_t start = SteadyNanoseconds();
    num_asleep_.fetch_add(1);  // before the kernel looks at loop_ again; RunErased reads it after
    while (!has_new()) FutexWait(loop_, now);
    num_asleep_.fetch_sub(1);
    spins.Learn(SteadyNanoseconds() - start);
  }
  return stopping_ ? 0 : now & ~1u;
}

// The worker writes `inside` and then reads loop_, the caller writes loop_ and then reads `inside`,
// all sequentially consistent: one of them sees the other.
bool ThreadPool::Enter(int worker, uint32_t loop) {
  seats_[static_cast<size_t>(worker)].inside.store(loop);
  return loop_.load() == loop;
}

void ThreadPool::Leave(int worker) {
  std::atomic<uint32_t>& inside = seats_[static_cast<size_t>(worker)].inside;
  if ((inside.exchange(0) & 1) != 0) FutexWake(inside, 1);
}

void ThreadPool::WaitUntilOutside(int worker, uint32_t loop) {
  std::atomic<uint32_t>& inside = seats_[static_cast<size_t>(worker)].inside;
  if (caller_spins_.Spin([&] { return inside.load() != loop; })) return;
  const int64_t start = SteadyNanoseconds();
  uint32_t expected = loop;
  if (inside.compare_exchange_strong(expected, loop | 1)) {
    while (inside.load() == (loop | 1)) FutexWait(inside, loop | 1);
  }
  caller_spins_.Learn(SteadyNanoseconds() - start);
}

void ThreadPool::RestAsPaid(PartTime& time) {
  while (!stopping_ && time.ShouldRest(SteadyNanoseconds(), ProcessNanoseconds)) {
    last_rests_.store(true, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::nanoseconds(PartTime::kRest));
  }
  last_rests_.store(false, std::memory_order_relaxed);
}

void ThreadPool::Work(int worker) {
  NameThread("compute");
  SpinBudget spins(most_spin_);
  PartTime time(worker == size() - 1 ? plan_.quota : 0);
  uint32_t loop = 0;
  while ((loop = WaitForLoop(loop, spins)) != 0) {
    if (plan_.quota > 0) RestAsPaid(time);
    if (Enter(worker, loop)) {
      const int64_t start = counts_time_ ? SteadyNanoseconds() : 0;
      TakeShares(worker);
      if (counts_time_) {
        seats_[static_cast<size_t>(worker)].busy_nanoseconds += SteadyNanoseconds() - start;
      }
    }
    Leave(worker);
  }
}

void ThreadPool::RunErased(int n, int grain, bool only_own, Call call, void* body) {
  HEARTH_DCHECK(n >= 0 && grain >= 1);
  if (is_alone() || n <= grain) {
    // Too little to share: worker 0 has it all, as the split would say anyway for one grain.
    if (n > 0) call(body, Range{0, n}, 0);
    return;
  }
  call_ = call;
  body_ = body;
  n_ = n;
  grain_ = grain;
  only_own_ = only_own;
  ++num_loops_;
  // Loops are numbered 2, 4, 6, ...; 0 means none, also after two thousand million of them.
  const uint32_t last = loop_.load(std::memory_order_relaxed);
  const uint32_t loop = last + 1 != 0 ? last + 1 : 2;
  const int64_t start = counts_time_ ? SteadyNanoseconds() : 0;
  loop_.store(loop);
  if (num_asleep_.load() > 0) FutexWake(loop_);
  TakeShares(0);
  loop_.store(loop + 1);  // whoever has not entered by now finds it closed
  if (counts_time_) seats_[0].busy_nanoseconds += SteadyNanoseconds() - start;
  for (int worker = 1; worker < size(); ++worker) WaitUntilOutside(worker, loop);
  if (counts_time_) loops_nanoseconds_ += SteadyNanoseconds() - start;
}

}  // namespace hearth
