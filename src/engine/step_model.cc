// SPDX-License-Identifier: Apache-2.0
#include "engine/step_model.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

constexpr int kTerms = StepModel::kTerms;
using Vector = StepModel::Terms;

// Units in which the terms of usual steps are all near 1, so that the fit is well-conditioned.
constexpr Vector kScale = {1, 1.0 / 64, 1.0 / 4, 1.0 / 4096, 1};
// A step counts for less than a tenth after 230 more: some ten seconds of decoding.
constexpr double kFade = 0.99;
// Holds what recent steps say nothing about at its last value.
constexpr double kPull = 0.01;
// Before this many steps nothing is called unusual.
constexpr int64_t kWarmUp = 16;
// How much of a step's surprise is believed to be the machine's pace, and how much of a surprise
// one step can be: one interrupted step changes the pace by 11 %, a machine that becomes five times
// slower is followed within 16.
constexpr double kPaceShare = 0.15, kMostSurprise = 2;

int TokensOf(const StepShape& shape) { return shape.prefill_tokens + shape.decode_slices; }

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += a[i] * b[i];
  return sum;
}

// Solves the symmetric positive system over the terms that `used` names; the others are 0.
Vector Solve(std::array<Vector, kTerms> m, Vector y, const std::array<bool, kTerms>& used) {
  for (size_t i = 0; i < kTerms; ++i) {
    if (used[i]) continue;
    for (size_t j = 0; j < kTerms; ++j) m[i][j] = m[j][i] = 0;
    m[i][i] = 1;
    y[i] = 0;
  }
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t row = i + 1; row < kTerms; ++row) {
      const double factor = m[row][i] / m[i][i];
      for (size_t j = i; j < kTerms; ++j) m[row][j] -= factor * m[i][j];
      y[row] -= factor * y[i];
    }
  }
  Vector x{};
  for (size_t i = kTerms; i-- > 0;) {
    double sum = y[i];
    for (size_t j = i + 1; j < kTerms; ++j) sum -= m[i][j] * x[j];
    x[i] = sum / m[i][i];
  }
  return x;
}

}  // namespace

double ShareOfExperts(const ExpertCounts& experts, int tokens) {
  if (experts.total <= 0) return 0;
  const double missed = 1 - static_cast<double>(experts.active) / experts.total;
  return 1 - std::pow(missed, tokens);
}

StepModel::Terms StepModel::TermsOf(const StepShape& shape, double share_of_experts) const {
  return {kScale[0], shape.prefill_tokens * kScale[1], shape.decode_slices * kScale[2],
          static_cast<double>(shape.context) * kScale[3], share_of_experts * kScale[4]};
}

void StepModel::Observe(const StepShape& shape, int64_t us) {
  double seen = static_cast<double>(std::max<int64_t>(us, 0));
  // A step that the machine interrupted must not teach that all such steps are long; if they are,
  // the limit rises with every one of them.
  if (num_observed_ >= kWarmUp) {
    const double ratio = (seen + 1) / (PredictUs(shape) + 1);
    pace_ *= std::pow(std::clamp(ratio, 1 / kMostSurprise, kMostSurprise), kPaceShare);
    seen = std::min(seen, 4 * PredictUs(shape) + 1000);
  }
  const Vector x = TermsOf(shape, ShareOfExperts(experts_, TokensOf(shape)));
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) products_[i][j] = kFade * products_[i][j] + x[i] * x[j];
    targets_[i] = kFade * targets_[i] + x[i] * seen / pace_;
  }
  ++num_observed_;
  Fit();
}

void StepModel::Fit() {
  auto m = products_;
  Vector y = targets_;
  for (size_t i = 0; i < kTerms; ++i) {
    m[i][i] += kPull;
    y[i] += kPull * scaled_[i];
  }
  std::array<bool, kTerms> used = {true, true, true, true, true};
  Vector fit{};
  for (int round = 0; round < kTerms; ++round) {
    fit = Solve(m, y, used);
    const auto worst = std::min_element(fit.begin(), fit.end());
    if (*worst >= 0) break;
    used[static_cast<size_t>(worst - fit.begin())] = false;
  }
  for (size_t i = 0; i < kTerms; ++i) {
    scaled_[i] = std::max(fit[i], 0.0);
    coefficients_[i] = scaled_[i] * kScale[i] * pace_;
  }
}

double StepModel::PredictUs(const StepShape& shape) const {
  return pace_ * Dot(scaled_, TermsOf(shape, ShareOfExperts(experts_, TokensOf(shape))));
}

double StepModel::PredictWithAllExpertsUs(const StepShape& shape) const {
  return pace_ * Dot(scaled_, TermsOf(shape, experts_.total > 0 ? 1 : 0));
}

}  // namespace hearth
