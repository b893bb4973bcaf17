// SPDX-License-Identifier: Apache-2.0
// Threads for text: rendering prompts, reading replies, writing JSON. Neither a socket's thread nor
// the engine's may spend milliseconds on one client's text.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>
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
  std::mutex mu_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> queue_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
