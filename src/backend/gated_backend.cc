// SPDX-License-Identifier: Apache-2.0
#include "backend/gated_backend.h"

#include <utility>

namespace hearth {
namespace {

class GatedBackend final : public Backend {
 public:
  GatedBackend(std::unique_ptr<Backend> inner, StepGate& gate)
      : inner_(std::move(inner)), member_(gate) {}
  std::string_view name() const override { return inner_->name(); }
  KvLayout kv_layout() const override { return inner_->kv_layout(); }
  int vocab_size() const override { return inner_->vocab_size(); }
  int hidden_size() const override { return inner_->hidden_size(); }
  BackendCapabilities capabilities() const override { return inner_->capabilities(); }
  Status Begin(const StepPlan& plan) override {
    if (num_steps_ == 0) member_.Enter();
    Status status = inner_->Begin(plan);
    if (status.ok()) {
      ++num_steps_;
    } else if (num_steps_ == 0) {
      member_.Leave();
    }
    return status;
  }
  // Between two layers another engine may have the cores; whoever asked does not hear of that.
  bool Advance(const WantsBreak& wants_break) override {
    while (true) {
      bool was_asked = false;
      const bool done = inner_->Advance([&] {
        was_asked = wants_break();
        return was_asked || member_.HasRival();
      });
      if (done || was_asked) return done;
      member_.Leave();
      member_.Enter();
    }
  }
  Result<std::span<const RowResult>> Finish() override {
    auto result = inner_->Finish();
    if (--num_steps_ == 0) member_.Leave();
    return result;
  }

 private:
  const std::unique_ptr<Backend> inner_;
  StepGate::Member member_;
  int num_steps_ = 0;  // begun and not finished: the one that was left, and the one in its break
};

}  // namespace

std::unique_ptr<Backend> BehindGate(std::unique_ptr<Backend> inner, StepGate& gate) {
  return std::make_unique<GatedBackend>(std::move(inner), gate);
}

}  // namespace hearth
