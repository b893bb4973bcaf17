// SPDX-License-Identifier: Apache-2.0
// Closes a connection from another thread, for as long as there is one. Internal to the room.
#pragma once
#include <functional>
#include <utility>

#include "base/mutex.h"
namespace hearth {

// Thread: any. Under the lock, so that after Disarm nobody is still at it: what closes a connection
// dies with the server, and whoever may cut lives longer.
class Cutter {
 public:
  void Arm(std::function<void()> close) {
    const MutexLock lock(mu_);
    close_ = std::move(close);
  }
  void Disarm() { Arm(nullptr); }
  void Cut() {
    const MutexLock lock(mu_);
    if (close_) close_();
  }
  bool is_armed() const {
    const MutexLock lock(mu_);
    return close_ != nullptr;
  }

 private:
  mutable Mutex mu_;
  std::function<void()> close_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
