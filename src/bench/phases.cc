// SPDX-License-Identifier: Apache-2.0
#include "bench/phases.h"

#include <fmt/format.h>

namespace hearth {
namespace {

// Empty for a phase that this model does not have.
std::string NameOf(StepPhase phase, bool has_experts) {
  switch (phase) {
    case StepPhase::kProjections:
      return "projections";
    case StepPhase::kAttention:
      return "attention";
    case StepPhase::kRouter:
      return has_experts ? "router" : "";
    case StepPhase::kFeedForward:
      return has_experts ? "experts" : "feed-forward";
    case StepPhase::kHead:
      return "head";
    case StepPhase::kSmall:
      return "small operations";
  }
  return "";
}

// "-" for what was not counted or the machine lacks.
std::string Share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

std::vector<std::string> Cells(const PhaseFigure& phase, const Profile& profile,
                               const BenchRecord& record) {
  const bool has_rate = phase.is_work && phase.seconds > 0;
  const double bytes = has_rate ? phase.work.bytes / phase.seconds : 0;
  const double flops = has_rate ? phase.work.flops / phase.seconds : 0;
  const auto of = [&](double rate, RooflineIndex which) {
    return has_rate ? Share(rate, record.roofline(which)) : "-";
  };
  return {phase.name,
          fmt::format("{:.3f}", 1e3 * phase.seconds / static_cast<double>(profile.steps)),
          Share(phase.seconds, profile.total().seconds),
          Share(phase.waiting, phase.seconds),
          has_rate ? fmt::format("{:.1f}", 1e-9 * bytes) : "-",
          of(bytes, kStreamRead),
          has_rate ? fmt::format("{:.0f}", 1e-9 * flops) : "-",
          of(flops, kAmxPeak)};
}

// Every phase, and the whole step last.
std::vector<PhaseFigure> WithTotal(const Profile& profile) {
  std::vector<PhaseFigure> all = profile.phases;
  all.push_back(profile.total());
  return all;
}

std::string Line(const std::vector<std::string>& cells) {
  return fmt::format("{:<20} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8}\n", cells[0], cells[1],
                     cells[2], cells[3], cells[4], cells[5], cells[6], cells[7]);
}

}  // namespace

Profile ProfileOf(const PhaseTotals& totals, PhaseWork work, const WorkModel& model) {
  work[StepPhase::kFeedForward].bytes = model.ExpertBytes(totals.experts_read);
  Profile profile{.steps = totals.steps, .phases = {}};
  for (size_t i = 0; i < kNumPhases; ++i) {
    const auto phase = static_cast<StepPhase>(i);
    const std::string name = NameOf(phase, model.has_experts());
    if (name.empty()) continue;
    profile.phases.push_back({.name = name,
                              .seconds = totals[phase].seconds,
                              .waiting = totals[phase].waiting,
                              .alone = totals[phase].alone,
                              .work = work[phase],
                              .is_work = phase != StepPhase::kSmall});
  }
  return profile;
}

std::vector<std::string> PhaseHeadings() {
  return {"phase", "ms/step", "of step", "waiting", "GB/s", "of stream", "GFLOP/s", "of AMX"};
}

std::string PhaseLines(const BenchRecord& record) {
  std::string out;
  for (const Measurement& m : record.model->measurements) {
    if (!m.profile) continue;
    std::vector<std::string> headings = PhaseHeadings();
    headings[0] = NameOf(m.what);
    out += "\n" + Line(headings);
    for (const PhaseFigure& phase : WithTotal(*m.profile)) {
      out += Line(Cells(phase, *m.profile, record));
    }
  }
  if (out.empty()) return out;
  return out +
         "waiting: share of the workers' time spent idle, at barriers or behind serial code\n";
}

Json ProfileJson(const Profile& profile) {
  JsonArray phases;
  for (const PhaseFigure& phase : profile.phases) {
    phases.push_back(JsonObject{{"name", phase.name},
                                {"seconds", phase.seconds},
                                {"waiting_seconds", phase.waiting},
                                {"alone_seconds", phase.alone},
                                {"bytes", phase.work.bytes},
                                {"flops", phase.work.flops}});
  }
  const PhaseFigure total = profile.total();
  return JsonObject{{"steps", profile.steps},
                    {"seconds", total.seconds},
                    {"waiting_seconds", total.waiting},
                    {"alone_seconds", total.alone},
                    {"phases", std::move(phases)}};
}

std::vector<std::vector<std::string>> PhaseRows(const BenchRecord& record) {
  std::vector<std::vector<std::string>> rows;
  for (const Measurement& m : record.model->measurements) {
    if (!m.profile) continue;
    for (const PhaseFigure& phase : WithTotal(*m.profile)) {
      rows.push_back(Cells(phase, *m.profile, record));
      rows.back()[0] = NameOf(m.what) + ": " + phase.name;
    }
  }
  return rows;
}

}  // namespace hearth
