// SPDX-License-Identifier: Apache-2.0
// What `hearth doctor` reports: one finding per check, with what to do about it.
#pragma once
#include <functional>
#include <string>
#include <vector>
namespace hearth {

enum class Verdict : unsigned char {
  kGood,
  kUnknown,  // this machine does not say; nothing to do
  kNote,     // not wrong, but worth knowing
  kWarning,  // slower or less safe than it could be
  kFault     // something will not work
};
const char* NameOf(Verdict verdict);

struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string found = {};   // what is there, with units
  std::string advice = {};  // what to do next; empty for kGood and kUnknown
};

inline Finding Good(std::string found) { return {Verdict::kGood, std::move(found)}; }
inline Finding Unknown(std::string found) { return {Verdict::kUnknown, std::move(found)}; }
inline Finding Note(std::string found, std::string advice) {
  return {Verdict::kNote, std::move(found), std::move(advice)};
}
inline Finding Warning(std::string found, std::string advice) {
  return {Verdict::kWarning, std::move(found), std::move(advice)};
}
inline Finding Fault(std::string found, std::string advice) {
  return {Verdict::kFault, std::move(found), std::move(advice)};
}

// One thing to look at. `name` is subject.thing and stays stable: scripts select by it.
struct Check {
  std::string name;
  std::function<Finding()> look;
};

struct NamedFinding {
  std::string name;
  Finding finding;
};

// Runs every check in order.
std::vector<NamedFinding> Examine(const std::vector<Check>& checks);
Verdict WorstOf(const std::vector<NamedFinding>& findings);

}  // namespace hearth
