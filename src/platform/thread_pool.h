// SPDX-License-Identifier: Apache-2.0
// Fixed, pinned workers that run one parallel loop at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "platform/part_time.h"
#include "platform/spin.h"
#include "platform/worker_plan.h"

namespace hearth {

struct Range {
  int begin, end;
};

// Between two loops of a step, which are microseconds apart, workers spin; after a pause they
// sleep (spin.h). A loop never waits for a worker that has not begun: whoever is there takes over
// the shares that nobody has taken, and only work under way is waited for. So a worker that lost
// its processor to another process costs its share of the speed, not the step.
// Thread: Run is called from one thread at a time; the caller works too.
class ThreadPool {
 public:
  // Pins worker i to the processor that the plan has for it. The caller, worker 0, is left where
  // the system puts it: it is somebody else's thread; its processor is kept free for it.
  explicit ThreadPool(WorkerPlan plan);
  // On this machine, as one memory node.
  explicit ThreadPool(int num_threads) : ThreadPool(PlanWorkersHere(num_threads, kNumaOff)) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  int size() const { return plan_.size(); }
  const WorkerPlan& plan() const { return plan_; }

  // From now on adds up the time of loops, for profiles: two clock readings per worker and loop.
  void CountTime() { counts_time_ = true; }
  // Nanoseconds since CountTime: of the loops that were shared out, and of all workers' shares.
  struct LoopTime {
    int64_t loops = 0, busy = 0;
  };
  LoopTime loop_time() const;

  // Calls body(range, share) over [0, n) in fixed shares that are multiples of `grain`: the same n
  // always gives the same split. Share i is worker i's, so that it meets the same memory every
  // time, unless worker i comes late. No share is done twice or by two threads, so its number may
  // name scratch memory.
  template <class F>
  void Run(int n, int grain, F&& body) {
    using Body = std::remove_reference_t<F>;
    RunErased(n, grain, false, Erased<Body>, &body);
  }
  // Like Run, but a share comes in pieces of up to `grain`, and whoever has finished takes pieces
  // from the end of another's share: cores are not equally fast on a machine that others use too.
  template <class F>
  void RunBalanced(int n, int grain, F&& body) {
    const int ends[] = {n};
    RunPieces(ends, grain, body);
  }
  // RunBalanced for work whose memory belongs to nodes: [ends[k - 1], ends[k]) is done by node k's
  // workers. A range never crosses an end.
  template <class F>
  void RunByNode(std::span<const int> ends, int grain, F&& body) {
    RunPieces(ends, grain, body);
  }
  // Calls body(index, worker) for every index in [0, n), each taken by whoever is free next. For
  // work of uneven size; results must not depend on who did it.
  template <class F>
  void RunUneven(int n, F&& body) {
    std::atomic<int> next{0};
    RunOnThreads([&](Range, int worker) {
      for (int i = next.fetch_add(1); i < n; i = next.fetch_add(1)) body(i, worker);
    });
  }

 private:
  using Call = void (*)(void* body, Range range, int share);
  // What one worker shows to the others.
  struct alignas(64) Seat {
    // The loop that the worker is in, 0 when in none. Odd: the caller sleeps until it changes.
    std::atomic<uint32_t> inside{0};
    std::atomic<uint64_t> taken{0};  // the last loop in which somebody took this worker's share
    int64_t busy_nanoseconds = 0;  // written by its worker within a loop, read by the caller after
    // Pieces [begin, end) of the share, begin in the low half: one word, so both ends move safely.
    alignas(64) std::atomic<uint64_t> pieces{0};
  };
  template <class Body>
  static void Erased(void* body, Range range, int share) {
    (*static_cast<Body*>(body))(range, share);
  }
  // Calls body on every thread that comes before the loop is over, the caller's among them: for
  // work that threads take from each other anyway.
  template <class F>
  void RunOnThreads(F&& body) {
    RunErased(size(), 1, true, Erased<std::remove_reference_t<F>>, &body);
  }
  void RunErased(int n, int grain, bool only_own, Call call, void* body);
  void Work(int worker);
  // For the last worker, between two loops.
  void RestAsPaid(PartTime& time);
  // There is nobody to share with. Somebody may come any moment.
  bool is_alone() const {
    return workers_.size() <= (last_rests_.load(std::memory_order_relaxed) ? 1u : 0u);
  }
  // Waits for a loop other than `seen`. Its number, or 0 when the pool is closing.
  uint32_t WaitForLoop(uint32_t seen, SpinBudget& spins);
  // Whether the worker may take part in the loop: not once the caller has closed it.
  bool Enter(int worker, uint32_t loop);
  void Leave(int worker);
  void WaitUntilOutside(int worker, uint32_t loop);
  // What throws here ends the process: the others' shares use what its caller would take away.
  void TakeShares(int worker) noexcept;
  void RunShare(int share) const;
  // `ends` has one number, or one for each node.
  template <class F>
  void RunPieces(std::span<const int> ends, int grain, F&& body) {
    if (is_alone() || ends.back() <= grain) {
      for (int begin = 0; const int end : ends) {
        if (begin < end) body(Range{begin, end}, 0);
        begin = end;
      }
      return;
    }
    DealPieces(ends, grain);
    RunOnThreads([&](Range, int worker) {
      for (Range piece = NextPiece(worker); piece.begin < piece.end; piece = NextPiece(worker)) {
        body(piece, worker);
      }
    });
  }
  void DealPieces(std::span<const int> ends, int grain);
  // What the worker does next: from its own share, from another's of its group, and when the whole
  // loop waits for another group, from there. Empty when all is taken.
  Range NextPiece(int worker);
  Range NextPieceOf(Range owners, int worker);
  bool HasPieces(Range owners) const;
  // The first or the last piece that is left of a share, or -1.
  int TakePiece(int owner, bool first);

  // Units and workers that belong together in a loop of pieces.
  struct Group {
    Range units, workers;
  };

  const WorkerPlan plan_;
  std::unique_ptr<Seat[]> seats_;  // [size()]
  std::vector<Group> groups_;      // of the loop under way
  int piece_units_ = 1;
  bool counts_time_ = false;  // changes between loops only
  int64_t loops_nanoseconds_ = 0;
  std::vector<std::jthread> workers_;
  // The loop under way; written by Run before `loop_` tells the workers.
  Call call_ = nullptr;
  void* body_ = nullptr;
  int n_ = 0, grain_ = 1;
  uint64_t num_loops_ = 0;  // with this one; unlike loop_ it never comes round
  bool only_own_ = false;   // nobody takes another's share: it holds no work of its own
  SpinBudget caller_spins_;
  int64_t most_spin_ = SpinBudget::kMost;
  // The number of the last loop, which is even; one more when the loop is closed.
  alignas(64) std::atomic<uint32_t> loop_{1};
  alignas(64) std::atomic<int> num_asleep_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> last_rests_{false};  // the last worker, as its quota is spent
};

}  // namespace hearth
