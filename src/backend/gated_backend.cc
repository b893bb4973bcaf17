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
    member_.Enter();
    Status status = inner_->Begin(plan);
    if (!status.ok()) member_.Leave();
    return status;
  }
  Result<std::span<const RowResult>> Finish() override {
    auto result = inner_->Finish();
    member_.Leave();
    return result;
  }

 private:
  const std::unique_ptr<Backend> inner_;
  StepGate::Member member_;
};

}  // namespace

std::unique_ptr<Backend> BehindGate(std::unique_ptr<Backend> inner, StepGate& gate) {
  return std::make_unique<GatedBackend>(std::move(inner), gate);
}

}  // namespace hearth
