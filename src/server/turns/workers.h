// SPDX-License-Identifier: Apache-2.0
// Threads for text: rendering prompts, reading replies, writing JSON. Neither a socket's thread nor
// the engine's may spend milliseconds on one client's text.
#pragma once
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
namespace hearth {

// Thread: any.
class Workers {
 public:
  Workers(int num_threads, size_t max_queued);
  ~Workers();  // stops
  // False when too much is queued already: for work that may be refused.
  bool Offer(std::function<void()> work);
  // For work that must happen, because something was promised: the rest of a reply.
  void Post(std::function<void()> work);
  // Runs what is queued, then joins.
  void Stop();

 private:
  void Run();
  const size_t max_queued_;
  Mutex mu_;
  CondVar arrived_;
  std::deque<std::function<void()>> queue_ HEARTH_GUARDED_BY(mu_);
  bool is_stopping_ HEARTH_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
