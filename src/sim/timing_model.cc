// SPDX-License-Identifier: Apache-2.0
#include "sim/timing_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {
namespace {

struct Case {
  bool is_prefill = false;
  double sequences = 1, depth = 0, tokens = 0, steps = 1, us = 0;
  // Shares of the time, if the benchmark was asked for phases.
  std::optional<double> attention, head;
};

Result<double> NumberIn(const Json& object, const char* name) {
  const Json* value = object.Find(name);
  const std::optional<double> number = value == nullptr ? std::nullopt : value->number();
  if (!number || !std::isfinite(*number) || *number < 0) {
    return Error(Code::kInvalid, "a measurement's \"%s\" is no number of at least 0", name);
  }
  return *number;
}

std::optional<double> ShareOfPhase(const Json& measurement, std::string_view wanted) {
  const Json* profile = measurement.Find("profile");
  const Json* phases = profile == nullptr ? nullptr : profile->Find("phases");
  if (phases == nullptr || phases->array() == nullptr) return std::nullopt;
  double found = 0, sum = 0;
  for (const Json& phase : *phases->array()) {
    const Json* name = phase.Find("name");
    const Json* value = phase.Find("seconds");
    const double seconds = value == nullptr ? 0 : value->number().value_or(0);
    if (name != nullptr && name->string() != nullptr && *name->string() == wanted) found = seconds;
    sum += seconds;
  }
  if (sum <= 0) return std::nullopt;
  return found / sum;
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
  out.attention = ShareOfPhase(measurement, "attention");
  out.head = ShareOfPhase(measurement, "head");
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

std::vector<TimingModel::Point> PointsOf(const std::map<double, double>& curve) {
  std::vector<TimingModel::Point> points;
  for (const auto& [tokens, us] : curve) points.push_back({tokens, us});
  return points;
}

std::vector<TimingModel::Point> NeverFalling(std::vector<TimingModel::Point> points) {
  for (size_t i = 1; i < points.size(); ++i) {
    HEARTH_CHECK(points[i].tokens > points[i - 1].tokens);
    points[i].us = std::max(points[i].us, points[i - 1].us);
  }
  return points;
}

Result<TimingModel> FromCases(const std::vector<Case>& cases, double chunk) {
  std::map<double, double> curve, head, whole;  // tokens, or rows of logits, of a step -> us
  const bool has_heads =
      std::ranges::all_of(cases, [](const Case& c) { return c.head.has_value(); });
  for (const Case& c : cases) {
    if (c.is_prefill || c.depth > 0) continue;
    whole[c.sequences] = c.us / c.steps;
    head[c.sequences] = has_heads ? *c.head * c.us / c.steps : 0;
    curve[c.sequences] = whole[c.sequences] - head[c.sequences];
  }
  if (curve.empty()) {
    return Error(Code::kInvalid, "no decode case without context among the measurements");
  }
  const double per_position = UsPerPosition(cases, whole);
  double per_prompt_position = per_position;
  for (const Case& c : cases) {
    if (!c.is_prefill || c.depth > 0) continue;
    const double step_tokens = chunk > 0 ? std::min(chunk, c.tokens) : c.tokens;
    const double looks = c.tokens * (c.tokens + 1) / 2;
    if (c.attention) {
      per_prompt_position = std::min(per_prompt_position, *c.attention * c.us / looks);
    }
    const double others = looks * per_prompt_position + (has_heads ? *c.head * c.us : 0);
    curve[step_tokens] = std::max(0.0, c.us - others) / std::ceil(c.tokens / step_tokens);
  }
  const TimingModel model =
      TimingModel(PointsOf(curve), per_position).WithPromptPositions(per_prompt_position);
  return has_heads ? model.WithHead(PointsOf(head)) : model;
}

double At(const std::vector<TimingModel::Point>& points, int64_t count) {
  const auto x = static_cast<double>(count);
  if (x <= points.front().tokens || points.size() == 1) return points.front().us;
  size_t right = 1;
  while (right + 1 < points.size() && points[right].tokens < x) ++right;
  const TimingModel::Point &a = points[right - 1], &b = points[right];
  return a.us + (b.us - a.us) * (x - a.tokens) / (b.tokens - a.tokens);
}

}  // namespace

TimingModel::TimingModel(std::vector<Point> points, double us_per_position,
                         const ExpertTiming& experts)
    : points_(NeverFalling(std::move(points))),
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

TimingModel TimingModel::WithHead(std::vector<Point> head) const {
  TimingModel out = *this;
  out.head_ = NeverFalling(std::move(head));
  return out;
}

TimingModel TimingModel::Times(double factor) const {
  TimingModel out = *this;
  for (std::vector<Point>* curve : {&out.points_, &out.head_}) {
    for (Point& point : *curve) point.us *= factor;
  }
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
  HEARTH_ASSIGN(const double chunk, NumberIn(bench, "chunk"));
  std::vector<Case> cases;
  for (const Json& row : *rows) {
    HEARTH_ASSIGN(const Case c, ReadCase(row));
    cases.push_back(c);
  }
  return FromCases(cases, chunk);
}

TimingModel TimingModel::TwentyB() {
  // Attention's weights and the head take 55 ms, all experts of 4 in 32 another 380: one token
  // reads an eighth of them, 8 two thirds, 32 nearly all. Products then decide: 150 tokens/s of
  // prefill.
  return TimingModel({{1, 54'500}, {512, 3'033'000}}, 0.5, {{32, 4}, 380'000});
}

double TimingModel::StepUs(const StepLoad& load) const {
  const double head = head_.empty() || load.rows == 0 ? 0 : At(head_, load.rows);
  return At(points_, load.tokens) + head + us_per_position_ * static_cast<double>(load.positions) +
         us_per_prompt_position_ * static_cast<double>(load.prompt_positions) +
         experts_.us * ShareOfExperts(experts_.counts, static_cast<int>(load.tokens));
}

double TimingModel::StepUs(const StepPlan& plan) const {
  StepLoad load{.tokens = static_cast<int64_t>(plan.tokens.size()), .rows = plan.num_rows};
  for (const SeqSlice& slice : plan.slices) {
    (slice.count == 1 ? load.positions : load.prompt_positions) += PositionsOf(slice);
  }
  return StepUs(load);
}

int64_t PositionsOf(const SeqSlice& slice) {
  const int64_t n = slice.count;
  return n * slice.num_computed + n * (n + 1) / 2;
}

}  // namespace hearth
