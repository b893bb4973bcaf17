// SPDX-License-Identifier: Apache-2.0
// Several engines on the same cores take turns: one step is computed at a time, and among those
// that want to begin one, whoever used the least time lately goes first.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
namespace hearth {

// Thread: any. Outlives its members.
class StepGate {
 public:
  // `now_us` is for tests; empty: a steady clock.
  explicit StepGate(std::function<int64_t()> now_us = {});
  ~StepGate();

  // One who takes steps. Thread: one at a time.
  class Member {
   public:
    explicit Member(StepGate& gate);
    ~Member();  // must not be inside
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    // Waits for its turn.
    void Enter();
    void Leave();
    // From inside: somebody waits who has used less than this one, the time since Enter included.
    bool HasRival() const;

   private:
    friend class StepGate;
    StepGate& gate_;
    // What it used, in the gate's time: one that comes back after a rest starts level with the
    // others, and cannot keep them waiting for what it left unused.
    int64_t used_us_ = 0;
    int64_t entered_us_ = 0;
    bool waits_ = false;
  };

 private:
  bool IsTurnOf(const Member& member) const HEARTH_REQUIRES(mu_);

  const std::function<int64_t()> now_us_;
  Mutex mu_;
  CondVar changed_;
  std::vector<Member*> members_ HEARTH_GUARDED_BY(mu_);
  const Member* inside_ HEARTH_GUARDED_BY(mu_) = nullptr;
  std::atomic<int> num_waiting_{0};  // so that HasRival costs nothing while nobody waits
  int64_t level_us_ HEARTH_GUARDED_BY(mu_) = 0;  // what those who began last had used
};

}  // namespace hearth
