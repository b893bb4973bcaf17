// SPDX-License-Identifier: Apache-2.0
// Where a value lies on a picture's edge, and which values are written beside it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>
namespace hearth {

enum class Scale : unsigned char {
  kLinear,
  kLog,    // decades; values must be positive
  kNines,  // percentiles, spread out towards 100: 50, 90, 99, 99.9 lie equally far apart
};
struct AxisSpec {
  std::string label = {};
  Scale scale = Scale::kLinear;
  std::optional<double> least = {}, most = {};  // else what the values need, rounded outwards
};
struct Tick {
  double value = 0;
  std::string label = {};  // empty: a thin line only
};

class Axis {
 public:
  // Maps the values' range to pixels [begin, end], which may run downwards.
  Axis(const AxisSpec& spec, std::span<const double> values, double begin, double end);
  double At(double value) const;
  double least() const { return least_; }
  double most() const { return most_; }
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void RangeOf(const AxisSpec& spec, std::span<const double> values);
  void MarkLinear(bool least_is_free, bool most_is_free);
  void MarkLog();
  void MarkNines();
  double Along(double value) const;

  Scale scale_;
  double begin_, end_;
  double least_ = 0, most_ = 1;
  std::vector<Tick> ticks_;
};

// "0.25", "1500", "2.1M": short enough for a tick.
std::string ShortNumber(double value);

}  // namespace hearth
