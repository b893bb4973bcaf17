// SPDX-License-Identifier: Apache-2.0
// Threads for text: rendering prompts, reading replies, writing JSON. Neither a socket's thread nor
// the engine's may spend milliseconds on one client's text, and no client's text waits for all of
// another's: clients take turns.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
namespace hearth {

struct WorkerOptions {
  int num_threads = 1;
  size_t max_queued = 1024;  // half of it for one client
  int niceness = 0;          // added to the process's: threads that run when others leave time
  // What a thread has used so far, in seconds; null: the processor time of the thread that asks.
  std::function<double()> used_s = nullptr;
};

// Turns are by time: next comes who has used least since it last had nothing to do, so that
// whoever used more waits longer (deficit round robin, without a quantum to choose). One client's
// work is done in its order, and with several threads by all but one of them at most:
// whoever comes next finds a thread that is free, or is soon.
// Thread: any.
class Workers {
 public:
  using Work = std::function<void()>;
  explicit Workers(const WorkerOptions& options);
  ~Workers();  // stops
  // False when too much is queued already: for work that may be refused.
  bool Offer(const std::string& client, Work work);
  // For work that must happen, because something was promised: the rest of a reply.
  void Post(const std::string& client, Work work);
  // Runs what is queued, then joins.
  void Stop();

 private:
  // Names of clients by the time they used, then by when they came.
  using Ready = std::map<std::pair<double, uint64_t>, std::string>;
  struct Queue {
    std::deque<Work> waiting;
    int running = 0;
    bool is_ready = false;   // its name is in ready_
    Ready::node_type place;  // for when it is not: moving it needs no memory
    double used_s = 0;       // by its work, from where the others were when it came
  };
  void Run();
  void Do(Work work) const;
  // Of clients that are even with the others nothing need be remembered.
  void ForgetEven() HEARTH_REQUIRES(mu_);
  void Add(const std::string& client, Work work) HEARTH_REQUIRES(mu_);
  void MakeReady(Queue& queue) HEARTH_REQUIRES(mu_);

  const WorkerOptions options_;
  const int max_each_;  // threads that work for one client
  Mutex mu_;
  CondVar arrived_;
  std::unordered_map<std::string, Queue> clients_ HEARTH_GUARDED_BY(mu_);
  // Whose turn it is: clients with work that waits and a thread they may still have, by the time
  // they used, then by when they came.
  Ready ready_ HEARTH_GUARDED_BY(mu_);
  uint64_t num_ready_ HEARTH_GUARDED_BY(mu_) = 0;  // ever
  size_t forget_at_ HEARTH_GUARDED_BY(mu_) = 64;   // when there are so many
  double level_s_ HEARTH_GUARDED_BY(mu_) = 0;      // what the last one to begin had used
  size_t num_queued_ HEARTH_GUARDED_BY(mu_) = 0;
  bool is_stopping_ HEARTH_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
