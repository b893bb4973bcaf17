// SPDX-License-Identifier: Apache-2.0
// The scheduler's part in sharing out time: whom a step serves, and who need not wait for it. A
// tenant that used less than others gets its prompt computed in a step without theirs, also when
// theirs is under way.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "engine/scheduler.h"

namespace hearth {
namespace {

// Tenants that differ by less than this share of the credit are served together.
constexpr double kClearly = 0.25;
// Streams of others come along in a step for prompts where they lengthen it by no more than this.
constexpr double kLittle = 1.25;

}  // namespace

void Scheduler::ShareOut(int64_t now_us) {
  const StepModel& model = chunks_.model();
  step_->shares.clear();
  step_->urgency = kNumPriorities;
  double sum = 0;
  for (const Sequence* s : step_->planned) {
    const int count = s->num_planned + static_cast<int>(s->draft.size());
    StepShape alone;
    (s->num_planned == 1 ? alone.decode_slices : alone.prefill_tokens) = count;
    alone.context = int64_t{count} * s->num_computed + int64_t{count} * count / 2;
    const double us = model.measured() ? std::max(1.0, model.PredictUs(alone)) : count;
    const uint32_t tenant = s->request.domain.tenant;
    auto share = std::ranges::find(step_->shares, tenant, &Step::Share::tenant);
    if (share == step_->shares.end()) share = step_->shares.insert(share, {tenant, 0});
    share->share += us;
    sum += us;
    step_->urgency = std::min(step_->urgency, queue_.ClassOf(*s, now_us));
  }
  for (Step::Share& share : step_->shares) share.share /= sum;
}

void Scheduler::ChargeStep(int64_t us) {
  if (us <= 0) return;
  for (const Step::Share& share : step_->shares) {
    queue_.Charge(share.tenant, share.share * static_cast<double>(us));
  }
  step_->charged_us += us;
}

// How long those in a step of this shape may be kept waiting by steps for others: as long as their
// own step takes, or one who asks for little would wait for all that a newcomer has to its credit.
// Streams wait for half of what a gap may be if that is more.
int64_t Scheduler::BreaksWithinUs(const StepShape& shape) const {
  const auto own_us = static_cast<int64_t>(chunks_.model().PredictUs(shape));
  if (shape.decode_slices > 0) return std::max(options_.itl_target_us / 2, own_us);
  return chunks_.model().measured() ? own_us : static_cast<int64_t>(chunks_.quiet_us());
}

// Prompts of those who used clearly less than somebody else who wants anything. Streams of others
// wait for that only when some prompt comes to its end by it: beside them the longer ones are read
// in steps with everybody. False: there is nothing to do apart, and what was planned is a part of
// what everybody wants.
bool Scheduler::PlanApart(int64_t now_us) {
  const int64_t waited_us = std::exchange(streams_waited_us_, 0);
  if (queue_.num_tenants() < 2) return false;
  double most_us = queue_.MostUsedUs();
  int urgency = kNumPriorities;
  StepShape streams;
  for (const Sequence* s : running_) {
    if (s->paused || s->backlog() != 1) continue;
    most_us = std::max(most_us, queue_.UsedUs(s->request.domain.tenant));
    urgency = std::min(urgency, queue_.ClassOf(*s, now_us));
    ++streams.decode_slices;
    streams.context += s->num_computed;
  }
  const double below = most_us - kClearly * queue_.credit_us();
  if (queue_.LeastUsedUs(now_us, urgency, {}) >= below) return false;
  step_->is_apart = true;
  PlanDecodes(now_us, below);
  const int others = step_->others = streams.decode_slices - step_->shape.decode_slices;
  const double may_take_us =
      others > 0 ? static_cast<double>(BreaksWithinUs(streams) - waited_us) : FairQueue::kEverybody;
  if (may_take_us <= 0) return false;
  chunks_.Begin(step_->shape, may_take_us, false);
  PlanPrefills(now_us, below);
  const bool is_worth_it = others == 0 ? step_->shape.prefill_tokens > 0 : step_->ends_prompt;
  if (!is_worth_it) return step_->is_apart = false;
  if (others == 0) return true;
  CountShape();
  StepShape all = step_->shape;
  all.decode_slices += others;
  all.context += streams.context;
  const double us = chunks_.model().PredictUs(step_->shape);
  if (chunks_.model().PredictUs(all) <= kLittle * us) {
    PlanDecodes(now_us);
  } else {
    streams_waited_us_ = waited_us + static_cast<int64_t>(us);
  }
  return true;
}

// Of the tenants outside the step under way that want anything at least as urgent.
double Scheduler::LeastUsedUs(int64_t now_us) const {
  std::vector<uint32_t> inside;
  for (const Step::Share& share : step_->shares) inside.push_back(share.tenant);
  double least_us = queue_.LeastUsedUs(now_us, step_->urgency, inside);
  for (const Sequence* s : running_) {
    const uint32_t tenant = s->request.domain.tenant;
    if (s->paused || s->backlog() != 1 || s->num_planned > 0) continue;
    if (queue_.ClassOf(*s, now_us) > step_->urgency) continue;
    if (std::ranges::find(inside, tenant) == inside.end()) {
      least_us = std::min(least_us, queue_.UsedUs(tenant));
    }
  }
  return least_us;
}

// What those in the step have used, by their shares in it.
double Scheduler::LevelUs(const Step& step) const {
  double level_us = 0;
  for (const Step::Share& share : step.shares) {
    level_us += share.share * queue_.UsedUs(share.tenant);
  }
  return level_us;
}

int64_t Scheduler::BreakAtUs(int64_t since_us) const {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  if (!in_step_ || left_ != nullptr || queue_.num_tenants() < 2) return kNever;
  if (step_->broken_us >= BreaksWithinUs(step_->shape)) return kNever;
  const double least_us = LeastUsedUs(since_us);
  if (least_us == FairQueue::kEverybody) return kNever;
  // While the step runs, everybody in it uses more: its level rises by the squares of the shares.
  double rate = 0;
  for (const Step::Share& share : step_->shares) rate += share.share * share.share;
  const double until_us = (least_us - LevelUs(*step_)) / rate;
  return since_us + (until_us < 0 ? 0 : static_cast<int64_t>(until_us) + 1);
}

const StepPlan& Scheduler::PlanBreak(int64_t now_us) {
  HEARTH_CHECK(in_step_ && left_ == nullptr);
  left_ = step_;
  step_ = left_ == &steps_[0] ? &steps_[1] : &steps_[0];
  left_->chunk = chunks_.Leave();
  in_step_ = false;
  for (Sequence* s : left_->planned) s->in_left_step = true;
  BeginPlan(now_us);
  step_->is_apart = true;
  const double level_us = LevelUs(*left_);
  const bool has_streams = left_->shape.decode_slices > 0;
  const int64_t may_take_us = BreaksWithinUs(left_->shape) - left_->broken_us;
  PlanDecodes(now_us, level_us);
  chunks_.Begin(step_->shape, static_cast<double>(may_take_us), false);
  PlanPrefills(now_us, level_us);
  if (has_streams && !step_->ends_prompt) {
    while (!step_->planned.empty()) Unplan(*step_->planned.back());
  }
  BuildPlan(now_us);
  in_step_ = !step_->planned.empty();
  totals_.num_breaks += in_step_ ? 1 : 0;
  return step_->plan;
}

void Scheduler::EndBreak(int64_t took_us) {
  HEARTH_CHECK(!in_step_ && left_ != nullptr);
  step_ = left_;
  left_ = nullptr;
  for (Sequence* s : step_->planned) s->in_left_step = false;
  chunks_.GoOn(step_->chunk);
  step_->broken_us += took_us;
  in_step_ = true;
}

// Those in the step that were to end while it was under way.
void Scheduler::EndLate(int64_t now_us) {
  std::vector<LateEnd> later;
  for (LateEnd& end : std::exchange(late_ends_, {})) {
    const auto found = all_.find(end.id);
    if (found == all_.end()) continue;
    if (found->second->num_planned > 0) {  // in the step that was left
      later.push_back(std::move(end));
    } else {
      Finalise(*found->second, end.why, end.detail, now_us);
    }
  }
  late_ends_ = std::move(later);
}

}  // namespace hearth
