// SPDX-License-Identifier: Apache-2.0
#include "server/turns/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/thread_name.h"
#include "server/access/account.h"
#include "server/turns/within_memory.h"

namespace hearth {

Workers::Workers(const WorkerOptions& options)
    : options_(options), max_each_(std::max(1, options.num_threads - 1)) {
  for (int i = 0; i < options_.num_threads; ++i) threads_.emplace_back([this] { Run(); });
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

bool Workers::Offer(const std::string& client, Work work) {
  const MutexLock lock(mu_);
  if (num_queued_ >= options_.max_queued) return false;
  const auto found = clients_.find(client);
  const size_t own = found == clients_.end() ? 0 : found->second.waiting.size();
  if (own >= std::max<size_t>(1, options_.max_queued / 2)) return false;
  Add(client, std::move(work));
  return true;
}

void Workers::Post(const std::string& client, Work work) {
  const MutexLock lock(mu_);
  Add(client, std::move(work));
}

void Workers::Add(const std::string& client, Work work) {
  Queue& queue = clients_[client];
  // Who did nothing for a while does not save time up.
  queue.used_s = std::max(queue.used_s, level_s_);
  if (!queue.is_ready && queue.place.empty()) {
    Ready one;
    one.emplace(std::pair(0.0, uint64_t{0}), client);
    queue.place = one.extract(one.begin());
  }
  queue.waiting.push_back(std::move(work));
  ++num_queued_;
  MakeReady(queue);
}

// Rung under the lock: once the work is visible it may be done, and its result may be what somebody
// waited for before destroying this. Allocates nothing: a client's turn cannot be lost.
void Workers::MakeReady(Queue& queue) {
  if (queue.is_ready || queue.waiting.empty() || queue.running >= max_each_) return;
  queue.is_ready = true;
  queue.place.key() = {queue.used_s, num_ready_++};
  ready_.insert(std::move(queue.place));
  arrived_.NotifyOne();
}

void Workers::Run() {
  NameThread("text");
  // Linux gives each thread its own; where that fails it is only less polite.
  if (options_.niceness > 0) {
    const auto self = static_cast<id_t>(::gettid());
    ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + options_.niceness);
  }
  const std::function<double()> used = options_.used_s ? options_.used_s : ThreadSeconds;
  MutexLock lock(mu_);
  while (true) {
    arrived_.Wait(mu_, [this]() HEARTH_REQUIRES(mu_) { return is_stopping_ || !ready_.empty(); });
    // What still waits then is of clients whose threads will come to it.
    if (ready_.empty()) return;
    level_s_ = std::max(level_s_, ready_.begin()->first.first);
    Queue& queue = clients_.find(ready_.begin()->second)->second;  // stays: `running` keeps it
    queue.place = ready_.extract(ready_.begin());
    double seconds = 0;
    {
      Work work = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      --num_queued_;
      queue.is_ready = false;
      ++queue.running;
      MakeReady(queue);
      lock.Unlock();
      const double began = used();
      Do(std::move(work));
      seconds = used() - began;
      lock.Lock();
    }
    queue.used_s += seconds;
    --queue.running;
    MakeReady(queue);
    if (num_queued_ == 0 || clients_.size() >= forget_at_) ForgetEven();
  }
}

void Workers::Do(Work work) const {
  // Work answers for itself when it finds no memory; what is left are books about it.
  WithinMemoryOr(work, [] {});
  work = nullptr;  // megabytes are given back here, not while others wait for the lock
}

// Those who used more than the others are remembered while they have nothing to do, until the
// others have caught up; when nobody has, there is nothing to be even with.
void Workers::ForgetEven() {
  const bool is_idle = num_queued_ == 0;
  std::erase_if(clients_, [&](const auto& entry) HEARTH_NO_THREAD_SAFETY_ANALYSIS {
    const Queue& queue = entry.second;
    const bool has_work = queue.running > 0 || !queue.waiting.empty();
    return !has_work && (queue.used_s <= level_s_ || is_idle);
  });
  forget_at_ = std::max<size_t>(64, 2 * clients_.size());
}

}  // namespace hearth
