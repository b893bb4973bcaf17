// SPDX-License-Identifier: Apache-2.0
#include "sim/timing_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace hearth {
namespace {

struct Case {
  bool is_prefill = false;
  double sequences = 1, depth = 0, tokens = 0, steps = 1, us = 0;
};

Result<double> NumberIn(const Json& object, const char* name) {
  const Json* value = object.Find(name);
  const std::optional<double> number = value == nullptr ? std::nullopt : value->number();
  if (!number || !std::isfinite(*number) || *number < 0) {
    return Error(Code::kInvalid, "a measurement's \"%s\" is no number of at least 0", name);
  }
  return *number;
}

Result<Case> ReadCase(const Json& measurement) {
  const Json* kind = measurement.Find("kind");
  const std::string* name = kind == nullptr ? nullptr : kind->string();
  if (name == nullptr || (*name != "prefill" && *name != "decode")) {
    return Error(Code::kInvalid, "a measurement's \"kind\" is neither prefill nor decode");
  }
  Case out;
  out.is_prefill = *name == "prefill";
  HEARTH_ASSIGN(out.sequences, NumberIn(measurement, "sequences"));
  HEARTH_ASSIGN(out.depth, NumberIn(measurement, "depth"));
  HEARTH_ASSIGN(out.tokens, NumberIn(measurement, "tokens"));
  HEARTH_ASSIGN(out.steps, NumberIn(measurement, "steps"));
  HEARTH_ASSIGN(const double seconds, NumberIn(measurement, "seconds"));
  if (out.steps < 1 || out.tokens < 1 || out.sequences < 1) {
    return Error(Code::kInvalid, "a measurement without steps, tokens or sequences");
  }
  out.us = 1e6 * seconds;
  return out;
}

// What one position costs: by how much a step with context outlasts the same step without.
double UsPerPosition(const std::vector<Case>& cases, const std::map<double, double>& curve) {
  double sum = 0;
  int count = 0;
  for (const Case& c : cases) {
    const auto plain = curve.find(c.sequences);
    if (c.is_prefill || c.depth == 0 || plain == curve.end()) continue;
    sum += std::max(0.0, (c.us / c.steps - plain->second) / (c.depth * c.sequences));
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

TimingModel::TimingModel(std::vector<Point> points, double us_per_position,
                         const ExpertTiming& experts)
    : points_(std::move(points)),
      us_per_position_(us_per_position),
      us_per_prompt_position_(us_per_position),
      experts_(experts) {
  HEARTH_CHECK(!points_.empty());
}

TimingModel TimingModel::WithPromptPositions(double us) const {
  TimingModel out = *this;
  out.us_per_prompt_position_ = us;
  return out;
}

TimingModel TimingModel::Times(double factor) const {
  TimingModel out = *this;
  for (Point& point : out.points_) point.us *= factor;
  out.us_per_position_ *= factor;
  out.us_per_prompt_position_ *= factor;
  out.experts_.us *= factor;
  return out;
}

Result<TimingModel> TimingModel::FromBench(const Json& bench) {
  const Json* measurements = bench.Find("measurements");
  const JsonArray* rows = measurements == nullptr ? nullptr : measurements->array();
  if (rows == nullptr) {
    return Error(Code::kInvalid, "no \"measurements\": made by `hearth bench --json` of a model?");
  }
  std::vector<Case> cases;
  for (const Json& row : *rows) {
    HEARTH_ASSIGN(const Case c, ReadCase(row));
    cases.push_back(c);
  }
  std::map<double, double> curve;  // tokens of a step -> us
  for (const Case& c : cases) {
    if (!c.is_prefill && c.depth == 0) curve[c.sequences] = c.us / c.steps;
  }
  if (curve.empty()) {
    return Error(Code::kInvalid, "no decode case without context among the measurements");
  }
  const double per_position = UsPerPosition(cases, curve);
  HEARTH_ASSIGN(const double chunk, NumberIn(bench, "chunk"));
  for (const Case& c : cases) {
    if (!c.is_prefill || c.depth > 0) continue;
    const double step_tokens = chunk > 0 ? std::min(chunk, c.tokens) : c.tokens;
    const double looks = c.tokens * (c.tokens + 1) / 2 * per_position;
    curve[step_tokens] = std::max(0.0, c.us - looks) / std::ceil(c.tokens / step_tokens);
  }
  std::vector<Point> points;
  double most = 0;
  for (const auto& [tokens, us] : curve) {
    most = std::max(most, us);  // noise must not make a larger step shorter than a smaller one
    points.push_back({tokens, most});
  }
  return TimingModel(std::move(points), per_position);
}

TimingModel TimingModel::TwentyB() {
  // Attention's weights and the head take 55 ms, all experts of 4 in 32 another 380: one token
  // reads an eighth of them, 8 two thirds, 32 nearly all. Products then decide: 150 tokens/s of
  // prefill.
  return TimingModel({{1, 54'500}, {512, 3'033'000}}, 0.5, {{32, 4}, 380'000});
}

double TimingModel::StepUs(int64_t tokens, int64_t positions, int64_t prompt_positions) const {
  const auto x = static_cast<double>(tokens);
  const double more = us_per_position_ * static_cast<double>(positions) +
                      us_per_prompt_position_ * static_cast<double>(prompt_positions) +
                      experts_.us * ShareOfExperts(experts_.counts, static_cast<int>(tokens));
  if (x <= points_.front().tokens || points_.size() == 1) return points_.front().us + more;
  size_t right = 1;
  while (right + 1 < points_.size() && points_[right].tokens < x) ++right;
  const Point &a = points_[right - 1], &b = points_[right];
  return a.us + (b.us - a.us) * (x - a.tokens) / (b.tokens - a.tokens) + more;
}

double TimingModel::StepUs(const StepPlan& plan) const {
  int64_t positions = 0, prompt_positions = 0;
  for (const SeqSlice& slice : plan.slices) {
    (slice.count == 1 ? positions : prompt_positions) += PositionsOf(slice);
  }
  return StepUs(static_cast<int64_t>(plan.tokens.size()), positions, prompt_positions);
}

int64_t PositionsOf(const SeqSlice& slice) {
  const int64_t n = slice.count;
  return n * slice.num_computed + n * (n + 1) / 2;
}

}  // namespace hearth
