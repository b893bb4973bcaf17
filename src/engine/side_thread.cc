// SPDX-License-Identifier: Apache-2.0
#include "engine/side_thread.h"

#include <utility>

#include "base/check.h"

namespace hearth {

SideThread::SideThread() : thread_([this] { Loop(); }) {}

SideThread::~SideThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SideThread::Begin(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    HEARTH_CHECK(state_ == State::kIdle);
    work_ = std::move(work);
    state_ = State::kAsked;
  }
  changed_.notify_all();
}

void SideThread::End() {
  std::unique_lock lock(mutex_);
  if (state_ == State::kAsked) state_ = State::kIdle;
  changed_.wait(lock, [&] { return state_ == State::kIdle; });
}

void SideThread::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || state_ == State::kAsked; });
    if (stop_) return;
    state_ = State::kWorking;
    lock.unlock();
    work_();
    lock.lock();
    state_ = State::kIdle;
    changed_.notify_all();
  }
}

}  // namespace hearth
