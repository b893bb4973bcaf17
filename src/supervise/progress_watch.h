// SPDX-License-Identifier: Apache-2.0
// A thread that ends a process which no longer gets anywhere, so that another can take its place:
// work without progress, or an end that does not come.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
namespace hearth {

// When silence has lasted long enough to act. Counts looks and not time: a process that was itself
// stopped for a while, with everything in it, must not be found guilty when it goes on.
// Thread: one.
class StallJudge {
 public:
  enum class Verdict : unsigned char { kFine, kTell, kWait, kEnd };
  // So many looks in a row are enough to tell somebody, and so many to give up.
  StallJudge(int looks_to_tell, int looks_to_end)
      : looks_to_tell_(looks_to_tell), looks_to_end_(looks_to_end) {}
  Verdict OnLook(bool is_stalled);
  // It was told, and lasts.
  bool is_wedged() const { return num_stalled_ >= looks_to_tell_; }

 private:
  const int looks_to_tell_, looks_to_end_;
  int num_stalled_ = 0;
};

struct ProgressOptions {
  double limit_s = 60;  // of a stall, from when it is seen
  double look_every_s = 0.5;
  std::function<void()> beat;                        // at every look; may be null
  std::function<void(const std::string& why)> tell;  // before the end: stacks; may be null
  std::function<void()> end;                         // does not return
};

// Thread: any. `beat`, `tell` and `end` are called on its own.
class ProgressWatch {
 public:
  explicit ProgressWatch(ProgressOptions options);
  ~ProgressWatch();
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;

  // From now on this is asked, until Forget, which must come before what it looks at goes.
  void Watch(std::function<bool()> is_stalled) HEARTH_EXCLUDES(mu_);
  void Forget() HEARTH_EXCLUDES(mu_);
  // The process is to be gone in so many seconds.
  void EndWithin(double seconds) HEARTH_EXCLUDES(mu_);
  bool is_wedged() const { return is_wedged_; }

 private:
  void Run() HEARTH_EXCLUDES(mu_);
  void Look() HEARTH_EXCLUDES(mu_);

  const ProgressOptions options_;
  StallJudge judge_;  // of the thread
  std::atomic<bool> is_wedged_{false};
  Mutex asking_;  // held while is_stalled_ is called, so that Forget can wait for it
  std::function<bool()> is_stalled_ HEARTH_GUARDED_BY(asking_);
  Mutex mu_;
  CondVar changed_;
  bool is_over_ HEARTH_GUARDED_BY(mu_) = false;
  int looks_left_ HEARTH_GUARDED_BY(mu_) = -1;  // until the end; -1: no end in sight
  std::thread thread_;
};

}  // namespace hearth
