// SPDX-License-Identifier: Apache-2.0
// Fixed, pinned workers that run one parallel loop at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace hearth {

struct Range {
  int begin, end;
};

// Between two loops of a step, which are microseconds apart, workers spin; after a pause they
// sleep. When a loop is seen to wait for a preempted worker (somebody else wants our cores),
// spinning only steals time from it, so the pool sleeps at once for a while.
// Thread: Run is called from one thread at a time; the caller works too.
class ThreadPool {
 public:
  // Pins worker i to core i of those that this thread may use, and to siblings only when every core
  // has a worker (WorkerCpus of topology.h). Pins nobody when there are too few processors.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // From now on adds up the time of loops, for profiles: two clock readings per worker and loop.
  void CountTime() { counts_time_ = true; }
  // Nanoseconds since CountTime: of the loops that were shared out, and of all workers' shares.
  struct LoopTime {
    int64_t loops = 0, busy = 0;
  };
  LoopTime loop_time() const;

  // Calls body(range, worker) over [0, n) in fixed shares that are multiples of `grain`: the same
  // n always gives the same split, so a worker meets the same memory every time.
  template <class F>
  void Run(int n, int grain, F&& body) {
    using Body = std::remove_reference_t<F>;
    RunErased(n, grain, [](void* f, Range r, int w) { (*static_cast<Body*>(f))(r, w); }, &body);
  }
  // Like Run, but a share comes in pieces of up to `grain`, and whoever has finished takes pieces
  // from the end of another's share: cores are not equally fast on a machine that others use too.
  template <class F>
  void RunBalanced(int n, int grain, F&& body) {
    if (workers_.empty() || n <= grain) return Run(n, grain, body);
    DealPieces((n + grain - 1) / grain);
    Run(size(), 1, [&](Range, int worker) {
      for (int i = 0; i < size(); ++i) {
        const int owner = (worker + i) % size();
        for (int piece = TakePiece(owner, i == 0); piece >= 0; piece = TakePiece(owner, i == 0)) {
          const int begin = piece * grain;
          body(Range{begin, n - begin < grain ? n : begin + grain}, worker);
        }
      }
    });
  }
  // Calls body(index, worker) for every index in [0, n), each taken by whoever is free next. For
  // work of uneven size; results must not depend on who did it.
  template <class F>
  void RunUneven(int n, F&& body) {
    std::atomic<int> next{0};
    Run(size(), 1, [&](Range, int worker) {
      for (int i = next.fetch_add(1); i < n; i = next.fetch_add(1)) body(i, worker);
    });
  }

 private:
  using Call = void (*)(void* body, Range range, int worker);
  void RunErased(int n, int grain, Call call, void* body);
  void Work(int worker);
  // What throws here ends the process: the others' shares use what its caller would take away.
  void RunShare(int worker) const noexcept;
  void DealPieces(int count);
  // The first or the last piece that is left of a share, or -1.
  int TakePiece(int owner, bool first);
  // Pieces [begin, end) of a share, begin in the low half: one word, so that both ends move safely.
  struct alignas(64) Pieces {
    std::atomic<uint64_t> left{0};
  };

  struct alignas(64) Busy {
    int64_t nanoseconds = 0;  // written by its worker within a loop, read by the caller after it
  };

  std::unique_ptr<Pieces[]> pieces_;  // [size()]
  std::unique_ptr<Busy[]> busy_;      // [size()]
  bool counts_time_ = false;          // changes between loops only
  int64_t loops_nanoseconds_ = 0;
  std::vector<std::jthread> workers_;
  // The loop under way; written by Run before `epoch_` tells the workers.
  Call call_ = nullptr;
  void* body_ = nullptr;
  int n_ = 0, grain_ = 1;
  int calm_loops_ = 0;  // loops left in which nobody spins
  std::atomic<int> num_spins_;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> num_busy_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace hearth
