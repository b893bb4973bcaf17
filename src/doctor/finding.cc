// SPDX-License-Identifier: Apache-2.0
#include "doctor/finding.h"

#include <algorithm>

#include "base/mask_secrets.h"

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
  for (const Check& check : checks) {
    findings.push_back({check.name, check.look()});
    Finding& finding = findings.back().finding;
    // They are printed, and sent to others in reports.
    finding.found = MaskSecrets(finding.found);
    finding.advice = MaskSecrets(finding.advice);
  }
  return findings;
}

Verdict WorstOf(const std::vector<NamedFinding>& findings) {
  Verdict worst = Verdict::kGood;
  for (const NamedFinding& each : findings) worst = std::max(worst, each.finding.verdict);
  return worst;
}

}  // namespace hearth
