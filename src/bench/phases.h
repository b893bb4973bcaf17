// SPDX-License-Identifier: Apache-2.0
// bench --phases: where the time of a step went, with the work of each phase, as table, JSON and
// rows of the page.
#pragma once
#include <string>
#include <vector>

#include "backend/step_phases.h"
#include "base/json.h"
#include "bench/case.h"
#include "bench/work.h"
namespace hearth {

// `work` is the case's, with the experts that random draws would touch; those that `totals`
// counted replace them.
Profile ProfileOf(const PhaseTotals& totals, PhaseWork work, const WorkModel& model);

// One table per profiled case; empty when no case has a profile.
std::string PhaseLines(const BenchRecord& record);
Json ProfileJson(const Profile& profile);
// Cells of one row per phase, all cases below each other, and their headings.
std::vector<std::string> PhaseHeadings();
std::vector<std::vector<std::string>> PhaseRows(const BenchRecord& record);

}  // namespace hearth
