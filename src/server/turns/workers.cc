// SPDX-License-Identifier: Apache-2.0
#include "server/turns/workers.h"

#include <utility>

namespace hearth {

Workers::Workers(int num_threads, size_t max_queued) : max_queued_(max_queued) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() { Stop(); }

void Workers::Stop() {
  {
    const MutexLock lock(mu_);
    is_stopping_ = true;
  }
  arrived_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// Rung under the lock: once the work is visible it may be done, and its result may be what somebody
// waited for before destroying this.
bool Workers::Offer(std::function<void()> work) {
  const MutexLock lock(mu_);
  if (queue_.size() >= max_queued_) return false;
  queue_.push_back(std::move(work));
  arrived_.NotifyOne();
  return true;
}

void Workers::Post(std::function<void()> work) {
  const MutexLock lock(mu_);
  queue_.push_back(std::move(work));
  arrived_.NotifyOne();
}

void Workers::Run() {
  MutexLock lock(mu_);
  while (true) {
    arrived_.Wait(mu_, [this]() HEARTH_REQUIRES(mu_) { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.Unlock();
    work();
    lock.Lock();
  }
}

}  // namespace hearth
