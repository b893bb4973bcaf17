// SPDX-License-Identifier: Apache-2.0
#include "backend/step_gate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

int64_t SteadyUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

StepGate::StepGate(std::function<int64_t()> now_us)
    : now_us_(now_us ? std::move(now_us) : SteadyUs) {}

StepGate::~StepGate() {
  const MutexLock lock(mu_);
  HEARTH_CHECK(members_.empty());
}

StepGate::Member::Member(StepGate& gate) : gate_(gate) {
  const MutexLock lock(gate_.mu_);
  gate_.members_.push_back(this);
}

StepGate::Member::~Member() {
  const MutexLock lock(gate_.mu_);
  HEARTH_CHECK(gate_.inside_ != this && !waits_);
  std::erase(gate_.members_, this);
}

// Equals go in the order of their addresses: any order will do, as long as there is one.
bool StepGate::IsTurnOf(const Member& member) const {
  if (inside_ != nullptr) return false;
  for (const Member* other : members_) {
    if (other == &member || !other->waits_) continue;
    const bool is_before = other->used_us_ < member.used_us_ ||
                           (other->used_us_ == member.used_us_ && other < &member);
    if (is_before) return false;
  }
  return true;
}

void StepGate::Member::Enter() {
  const MutexLock lock(gate_.mu_);
  used_us_ = std::max(used_us_, gate_.level_us_);
  waits_ = true;
  ++gate_.num_waiting_;
  gate_.changed_.Wait(gate_.mu_,
                      [this]() HEARTH_REQUIRES(gate_.mu_) { return gate_.IsTurnOf(*this); });
  waits_ = false;
  --gate_.num_waiting_;
  gate_.inside_ = this;
  gate_.level_us_ = std::max(gate_.level_us_, used_us_);
  entered_us_ = gate_.now_us_();
}

void StepGate::Member::Leave() {
  {
    const MutexLock lock(gate_.mu_);
    HEARTH_CHECK(gate_.inside_ == this);
    gate_.inside_ = nullptr;
    used_us_ += std::max<int64_t>(0, gate_.now_us_() - entered_us_);
  }
  gate_.changed_.NotifyAll();
}

bool StepGate::Member::HasRival() const {
  if (gate_.num_waiting_ == 0) return false;
  const MutexLock lock(gate_.mu_);
  const int64_t used_us = used_us_ + (gate_.now_us_() - entered_us_);
  return std::ranges::any_of(gate_.members_, [&](const Member* other) {
    return other->waits_ && other->used_us_ < used_us;
  });
}

}  // namespace hearth
