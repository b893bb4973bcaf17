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

// A mixture of experts: every token of a step uses `active` of `total` experts per layer. 0: dense.
struct ExpertCounts {
  int total = 0, active = 0;
};
// The share of experts that a step reads when its tokens choose theirs independently and evenly:
// E(n) / N = 1 - (1 - k / N)^n. 0 when dense.
double ShareOfExperts(const ExpertCounts& experts, int tokens);

// us = a + b prefill_tokens + c decode_slices + d context + e ShareOfExperts, no coefficient below
// zero, fitted to the steps seen with the older ones fading. Without the last term, a prompt beside
// a few streams looks dear by the token: its first tokens make the step read nearly all experts,
// and those after them come at the price of arithmetic.
//
// All of it is multiplied by the machine's pace, which follows within some ten steps: a machine
// that is slow for a while is slow at everything, and steps that are all alike cannot tell which
// term grew. Pure: the same steps give the same model. Thread: one.
class StepModel {
 public:
  static constexpr int kTerms = 5;
  using Terms = std::array<double, kTerms>;

  explicit StepModel(const ExpertCounts& experts = {}) : experts_(experts) {}
  void Observe(const StepShape& shape, int64_t us);
  // 0 before anything was observed.
  double PredictUs(const StepShape& shape) const;
  // The same step if it read every expert: what the streams take beside any prompt, but for the
  // prompt's own tokens.
  double PredictWithAllExpertsUs(const StepShape& shape) const;
  bool measured() const { return num_observed_ > 0; }
  double us_per_prefill_token() const { return coefficients_[1]; }
  const Terms& coefficients() const { return coefficients_; }  // a, b, c, d, e

 private:
  Terms TermsOf(const StepShape& shape, double share_of_experts) const;
  void Fit();
  const ExpertCounts experts_;
  std::array<Terms, kTerms> products_{};  // fading sums of x x^T, in scaled units
  Terms targets_{};                       // and of x y
  Terms scaled_{};                        // the last fit, in scaled units
  Terms coefficients_{};                  // the same in us, the pace included
  double pace_ = 1;
  int64_t num_observed_ = 0;
};

}  // namespace hearth
