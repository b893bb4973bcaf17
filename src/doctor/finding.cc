// SPDX-License-Identifier: Apache-2.0
#include "doctor/finding.h"

#include <algorithm>

namespace hearth {

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kNote:
      return "note";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFault:
      return "fault";
  }
  return "";
}

std::vector<NamedFinding> Examine(const std::vector<Check>& checks) {
  std::vector<NamedFinding> findings;
  for (const Check& check : checks) findings.push_back({check.name, check.look()});
  return findings;
}

Verdict WorstOf(const std::vector<NamedFinding>& findings) {
  Verdict worst = Verdict::kGood;
  for (const NamedFinding& each : findings) worst = std::max(worst, each.finding.verdict);
  return worst;
}

}  // namespace hearth
