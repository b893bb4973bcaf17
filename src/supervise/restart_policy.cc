// SPDX-License-Identifier: Apache-2.0
#include "supervise/restart_policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/result.h"

namespace hearth {
namespace {

// Who lived so long did not die of what the one before it died of.
constexpr double kLongLifeS = 60;
// A worker that served and died is replaced at once; when that repeats, after a short rest. What
// restarting costs is loading the model, which is its own brake.
constexpr double kFirstRestS = 0.05, kLongestRestS = 0.5;
// One that cannot even start is waiting for something: memory, a disk, a file.
constexpr double kFirstWaitS = 0.5, kLongestWaitS = 30;
// Ordinary errors are told in plain words, and the tenth time they are no accident.
constexpr int kMaxPlainErrors = 10;

double Doubled(double first, int times, double most) {
  return std::min(most, first * std::exp2(std::min(times, 30)));
}

}  // namespace

std::string Describe(bool by_signal, int number) {
  if (by_signal) {
    const char* name = ::sigdescr_np(number);
    return Printf("killed by signal %d (%s)", number, name == nullptr ? "unknown" : name);
  }
  const char* meaning = "";
  if (number == kExitStalled) meaning = " (no progress)";
  if (number == kExitFileLost) meaning = " (a file in use was shortened or cannot be read)";
  return Printf("exit code %d%s", number, meaning);
}

std::optional<double> RestartPolicy::OnEnd(const WorkerEnd& end) {
  const bool is_clean = !end.by_signal && end.number == 0;
  was_ever_ready_ |= end.was_ready;
  // Before anything was served nothing is lost by telling whoever started the program.
  if (is_clean || !was_ever_ready_) return std::nullopt;
  if (end.was_ready) {
    num_failed_starts_ = num_plain_errors_ = 0;
    if (end.lived_s >= kLongLifeS) num_short_lives_ = 0;
    const int before = num_short_lives_++;
    return before == 0 ? 0 : Doubled(kFirstRestS, before - 1, kLongestRestS);
  }
  const bool is_plain = !end.by_signal && (end.number == 1 || end.number == 2);
  num_plain_errors_ = is_plain ? num_plain_errors_ + 1 : 0;
  if (num_plain_errors_ >= kMaxPlainErrors) return std::nullopt;
  return Doubled(kFirstWaitS, num_failed_starts_++, kLongestWaitS);
}

void PoisonList::OnDeath(std::span<const RequestDigest> in_flight, double now_s) {
  std::vector<RequestDigest> distinct(in_flight.begin(), in_flight.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::erase_if(past_,
                [&](const auto& each) { return now_s - each.second.last_s > kForgetAfterS; });
  for (const RequestDigest& digest : distinct) {
    if (past_.size() >= kMaxEntries && !past_.contains(digest)) {
      // Those that were there once, longest ago, are worth least.
      past_.erase(std::min_element(past_.begin(), past_.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.num_deaths, a.second.last_s) <
               std::pair(b.second.num_deaths, b.second.last_s);
      }));
    }
    Past& past = past_[digest];
    ++past.num_deaths;
    past.last_s = now_s;
  }
}

void PoisonList::OnLanded(std::span<const RequestDigest> landed) {
  for (const RequestDigest& digest : landed) past_.erase(digest);
}

std::vector<PoisonList::Entry> PoisonList::entries(double now_s) {
  std::vector<Entry> out;
  for (const auto& [digest, past] : past_) {
    if (now_s - past.last_s > kForgetAfterS) continue;
    out.push_back({digest, past.num_deaths >= kDeaths});
  }
  return out;
}

}  // namespace hearth
