// SPDX-License-Identifier: Apache-2.0
// A thread that lends a hand with one piece of work at a time.
#pragma once
#include <functional>
#include <thread>

#include "base/mutex.h"
namespace hearth {

// Thread: Begin and End from one thread.
class SideThread {
 public:
  SideThread();
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Asks for `work` to be done on the other thread, soon. End must follow.
  void Begin(std::function<void()> work);
  // Returns when the work is done; or at once when it was not begun yet, and then never will be: a
  // busy machine may not have given the other thread a core.
  void End();

 private:
  enum class State : unsigned char { kIdle, kAsked, kWorking };
  void Loop();

  Mutex mutex_;
  CondVar changed_;
  std::function<void()> work_ HEARTH_GUARDED_BY(mutex_);
  State state_ HEARTH_GUARDED_BY(mutex_) = State::kIdle;
  bool stop_ HEARTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hearth
