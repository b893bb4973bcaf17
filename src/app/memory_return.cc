// SPDX-License-Identifier: Apache-2.0
#include "app/memory_return.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_name.h"

namespace hearth {

bool FreedWatch::IsDue(int64_t held) {
  most_ = std::max(most_, held);
  if (rest_ > 0 && --rest_ > 0) return false;
  if (std::exchange(is_owed_, false)) return true;
  const bool was_worth = std::exchange(was_worth_, most_ - held >= kWorth);
  if (!was_worth || !was_worth_) return false;
  was_worth_ = false;
  is_owed_ = true;
  most_ = held;
  rest_ = kRest;
  return true;
}

MemoryReturn::MemoryReturn(std::function<int64_t()> held, std::function<void()> give_back)
    : held_(std::move(held)), give_back_(std::move(give_back)), thread_([this] { Run(); }) {}

// One arena is locked after the other, and none for long.
MemoryReturn::MemoryReturn(std::function<int64_t()> held)
    : MemoryReturn(std::move(held), [] { ::malloc_trim(0); }) {}

MemoryReturn::~MemoryReturn() {
  {
    const MutexLock lock(mu_);
    is_ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void MemoryReturn::Run() {
  NameThread("memory");
  FreedWatch watch;
  while (true) {
    {
      const MutexLock lock(mu_);
      const bool ends = changed_.WaitFor(mu_, std::chrono::seconds(1),
                                         [this]() HEARTH_REQUIRES(mu_) { return is_ending_; });
      if (ends) return;
    }
    if (watch.IsDue(held_())) give_back_();
  }
}

}  // namespace hearth
