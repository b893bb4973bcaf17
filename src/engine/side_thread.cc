// SPDX-License-Identifier: Apache-2.0
#include "engine/side_thread.h"

#include <utility>

#include "base/check.h"
#include "base/thread_name.h"

namespace hearth {

SideThread::SideThread() : thread_([this] { Loop(); }) {}

SideThread::~SideThread() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void SideThread::Begin(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    HEARTH_CHECK(state_ == State::kIdle);
    work_ = std::move(work);
    state_ = State::kAsked;
  }
  changed_.NotifyAll();
}

void SideThread::End() {
  const MutexLock lock(mutex_);
  if (state_ == State::kAsked) state_ = State::kIdle;
  changed_.Wait(mutex_, [&]() HEARTH_REQUIRES(mutex_) { return state_ == State::kIdle; });
}

void SideThread::Loop() {
  NameThread("engine-beside");
  MutexLock lock(mutex_);
  while (true) {
    changed_.Wait(mutex_,
                  [&]() HEARTH_REQUIRES(mutex_) { return stop_ || state_ == State::kAsked; });
    if (stop_) return;
    state_ = State::kWorking;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.Unlock();
    work();
    lock.Lock();
    state_ = State::kIdle;
    changed_.NotifyAll();
  }
}

}  // namespace hearth
