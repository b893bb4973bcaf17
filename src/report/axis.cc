// SPDX-License-Identifier: Apache-2.0
#include "report/axis.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/result.h"

namespace hearth {
namespace {

// The least of 1, 2, 5 times a power of ten that is at least `value`.
double NiceStep(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// How many nines: 0 % is 0, 90 % is 1, 99 % is 2.
double Nines(double percentile) {
  return -std::log10(std::max(1e-9, 1 - std::min(percentile, 100.0) / 100));
}

}  // namespace

std::string ShortNumber(double value) {
  const double size = std::fabs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return Printf("%.3g", value);
  if (size >= 1e12) return ShortNumber(value / 1e12) + "T";
  if (size >= 1e9) return ShortNumber(value / 1e9) + "G";
  if (size >= 1e6) return ShortNumber(value / 1e6) + "M";
  if (size >= 1e4) return ShortNumber(value / 1e3) + "k";
  return Printf("%.4g", value);
}

Axis::Axis(const AxisSpec& spec, std::span<const double> values, double begin, double end)
    : scale_(spec.scale), begin_(begin), end_(end) {
  RangeOf(spec, values);
  if (scale_ == Scale::kLinear) MarkLinear(!spec.least, !spec.most);
  if (scale_ == Scale::kLog) MarkLog();
  if (scale_ == Scale::kNines) MarkNines();
}

void Axis::RangeOf(const AxisSpec& spec, std::span<const double> values) {
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value) || (scale_ == Scale::kLog && value <= 0)) continue;
    least_ = any ? std::min(least_, value) : value;
    most_ = any ? std::max(most_, value) : value;
    any = true;
  }
  if (!any) {
    least_ = scale_ == Scale::kLog ? 1 : 0;
    most_ = scale_ == Scale::kLog ? 10 : 1;
  }
  // Linear axes start at zero unless told otherwise: a cut axis exaggerates.
  if (scale_ == Scale::kLinear) {
    least_ = std::min(least_, 0.0);
    most_ = std::max(most_, 0.0);
  }
  if (scale_ == Scale::kNines) {
    least_ = 0;
    most_ = std::max(most_, 90.0);
  }
  least_ = spec.least.value_or(least_);
  most_ = spec.most.value_or(most_);
  HEARTH_CHECK(scale_ != Scale::kLog || least_ > 0);
  if (scale_ == Scale::kLog && !spec.least) least_ = std::pow(10, std::floor(std::log10(least_)));
  if (scale_ == Scale::kLog && !spec.most) most_ = std::pow(10, std::ceil(std::log10(most_)));
  if (scale_ == Scale::kNines) most_ = std::min(most_, 99.9999);
  if (most_ <= least_) most_ = scale_ == Scale::kLog ? least_ * 10 : least_ + 1;
}

void Axis::MarkLinear(bool least_is_free, bool most_is_free) {
  const double step = NiceStep((most_ - least_) / 6);
  if (least_is_free) least_ = std::floor(least_ / step + 1e-9) * step;
  if (most_is_free) most_ = std::ceil(most_ / step - 1e-9) * step;
  for (double i = std::ceil(least_ / step - 1e-9); i * step <= most_ + step * 1e-6; ++i) {
    const double value = i * step + 0.0;  // never a negative zero
    ticks_.push_back({value, ShortNumber(value)});
  }
}

void Axis::MarkLog() {
  const double decades = std::log10(most_ / least_);
  for (double power = std::floor(std::log10(least_)); power <= std::log10(most_) + 1e-9; ++power) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10, power);
      if (value < least_ * (1 - 1e-9) || value > most_ * (1 + 1e-9)) continue;
      // With few decades, more than the powers of ten are named.
      const bool named = digit == 1 || (decades < 3.5 && (digit == 2 || digit == 5));
      ticks_.push_back({value, named ? ShortNumber(value) : std::string()});
    }
  }
}

void Axis::MarkNines() {
  for (const double value : {0.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 99.999}) {
    if (value >= least_ - 1e-9 && value <= most_ + 1e-9) {
      ticks_.push_back({value, Printf("%.6g", value)});
    }
  }
}

double Axis::Along(double value) const {
  switch (scale_) {
    case Scale::kLinear:
      break;
    case Scale::kLog:
      return std::log10(std::max(value, least_ * 1e-3) / least_) / std::log10(most_ / least_);
    case Scale::kNines:
      return (Nines(value) - Nines(least_)) / (Nines(most_) - Nines(least_));
  }
  return (value - least_) / (most_ - least_);
}

double Axis::At(double value) const { return begin_ + (end_ - begin_) * Along(value); }

}  // namespace hearth
