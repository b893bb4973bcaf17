// SPDX-License-Identifier: Apache-2.0
// The one place where a tier's threads meet its listener.
#pragma once
#include <utility>

#include "base/mutex.h"
#include "kv/tier.h"
namespace hearth {

// Thread: any.
class ListenerGate {
 public:
  // When it returns, the listener before is not called any more.
  void Connect(TierListener* listener) {
    const MutexLock lock(mu_);
    listener_ = listener;
    call_ended_.Wait(mu_, [&]() HEARTH_REQUIRES(mu_) { return num_calls_ == 0; });
  }
  // The listener is called without the lock, because it sums the record up; Connect waits for that.
  void Answer(TierDone done) {
    MutexLock lock(mu_);
    if (listener_ == nullptr) return;
    TierListener* const to = listener_;
    ++num_calls_;
    lock.Unlock();
    to->OnTransfer(std::move(done));
    lock.Lock();
    if (--num_calls_ == 0) call_ended_.NotifyAll();
  }

 private:
  Mutex mu_;
  CondVar call_ended_;
  TierListener* listener_ HEARTH_GUARDED_BY(mu_) = nullptr;
  int num_calls_ HEARTH_GUARDED_BY(mu_) = 0;
};

}  // namespace hearth
