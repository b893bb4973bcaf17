// SPDX-License-Identifier: Apache-2.0
#include "supervise/progress_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace hearth {
namespace {

int LooksIn(double seconds, double every_s) {
  return std::max(1, static_cast<int>(std::ceil(seconds / every_s)));
}

}  // namespace

StallJudge::Verdict StallJudge::OnLook(bool is_stalled) {
  if (!is_stalled) {
    num_stalled_ = 0;
    return Verdict::kFine;
  }
  ++num_stalled_;
  if (num_stalled_ >= looks_to_end_) return Verdict::kEnd;
  return num_stalled_ == looks_to_tell_ ? Verdict::kTell : Verdict::kWait;
}

// Two looks in a row: one could be the first after a long sleep.
ProgressWatch::ProgressWatch(ProgressOptions options)
    : options_(std::move(options)),
      judge_(2, std::max(3, LooksIn(options_.limit_s, options_.look_every_s))),
      thread_([this] { Run(); }) {}

ProgressWatch::~ProgressWatch() {
  {
    const MutexLock lock(mu_);
    is_over_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void ProgressWatch::Watch(std::function<bool()> is_stalled) {
  const MutexLock lock(asking_);
  is_stalled_ = std::move(is_stalled);
}

void ProgressWatch::Forget() {
  const MutexLock lock(asking_);
  is_stalled_ = nullptr;
}

void ProgressWatch::EndWithin(double seconds) {
  const MutexLock lock(mu_);
  looks_left_ = LooksIn(seconds, options_.look_every_s);
}

void ProgressWatch::Run() {
  const auto every = std::chrono::duration<double>(options_.look_every_s);
  while (true) {
    Look();
    const MutexLock lock(mu_);
    if (changed_.WaitFor(mu_, every, [this]() HEARTH_REQUIRES(mu_) { return is_over_; })) return;
  }
}

void ProgressWatch::Look() {
  if (options_.beat) options_.beat();
  bool is_stalled = false;
  {
    const MutexLock lock(asking_);
    is_stalled = is_stalled_ && is_stalled_();
  }
  bool is_late = false;
  {
    const MutexLock lock(mu_);
    is_late = looks_left_ >= 0 && --looks_left_ < 0;
  }
  const StallJudge::Verdict verdict = judge_.OnLook(is_stalled);
  is_wedged_ = judge_.is_wedged();
  if (verdict == StallJudge::Verdict::kTell && options_.tell) {
    options_.tell("the engine makes no progress");
  }
  if (is_late && options_.tell) options_.tell("shutting down takes too long");
  if (is_late || verdict == StallJudge::Verdict::kEnd) options_.end();
}

}  // namespace hearth
