// SPDX-License-Identifier: Apache-2.0
// How long a step takes on this machine, learnt from the steps it made.
#pragma once
#include <array>
#include <cstdint>
namespace hearth {

// What a step's time depends on.
struct StepShape {
  int prefill_tokens = 0;  // in slices of more than one token
  int decode_slices = 0;   // of one token
  int64_t context = 0;     // positions looked at, over all tokens of the step
};

// us = a + b prefill_tokens + c decode_slices + d context, no coefficient below zero, fitted to the
// steps seen with the older ones fading. Pure: the same steps give the same model. Thread: one.
class StepModel {
 public:
  void Observe(const StepShape& shape, int64_t us);
  // 0 before anything was observed.
  double PredictUs(const StepShape& shape) const;
  bool measured() const { return num_observed_ > 0; }
  double us_per_prefill_token() const { return coefficients_[1]; }
  const std::array<double, 4>& coefficients() const { return coefficients_; }  // a, b, c, d

 private:
  void Fit();
  std::array<std::array<double, 4>, 4> products_{};  // fading sums of x x^T, in scaled units
  std::array<double, 4> targets_{};                  // and of x y
  std::array<double, 4> scaled_{};                   // the last fit, in scaled units
  std::array<double, 4> coefficients_{};
  int64_t num_observed_ = 0;
};

}  // namespace hearth
