// SPDX-License-Identifier: Apache-2.0
// What follows from a worker's end: when the next one starts, and which requests it must not be
// given again. No process and no clock here.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>
namespace hearth {

// A worker ends itself with these when going on makes no sense (sysexits.h has the same words).
inline constexpr int kExitStalled = 70;   // no progress, or a drain that does not end
inline constexpr int kExitFileLost = 74;  // a mapped file is shorter than it was, or unreadable

struct WorkerEnd {
  bool was_ready = false;  // it had begun to serve
  bool by_signal = false;
  int number = 0;      // the signal's, or the exit code
  double lived_s = 0;  // since it was ready, or else since its start
};
// "killed by signal 11 (Segmentation fault)", "exit code 70 (no progress)"
std::string Describe(bool by_signal, int number);

// Thread: one.
class RestartPolicy {
 public:
  // Seconds until the next start. None: the program ends, and as the worker did.
  std::optional<double> OnEnd(const WorkerEnd& end);

 private:
  bool was_ever_ready_ = false;
  int num_short_lives_ = 0;    // workers in a row that served, and died soon
  int num_failed_starts_ = 0;  // workers in a row that never came so far
  int num_plain_errors_ = 0;   // of those, with the exit code of an ordinary error
};

using RequestDigest = std::array<uint64_t, 2>;

// Requests that were being worked on when workers died. One that was there twice is refused. One
// that was there once and then came to its end is innocent: clients send the same request again,
// so that bystanders of two deaths would otherwise look like the cause.
// Thread: one.
class PoisonList {
 public:
  static constexpr size_t kMaxEntries = 256;
  static constexpr int kDeaths = 2;
  // Then it may be tried again: whatever was wrong may have been mended, and a bystander's
  // punishment must end.
  static constexpr double kForgetAfterS = 15 * 60;

  void OnDeath(std::span<const RequestDigest> in_flight, double now_s);
  void OnLanded(std::span<const RequestDigest> landed);
  struct Entry {
    RequestDigest digest{};
    bool is_refused = false;  // else only suspected
  };
  std::vector<Entry> entries(double now_s);

 private:
  struct Past {
    int num_deaths = 0;
    double last_s = 0;
  };
  std::map<RequestDigest, Past> past_;
};

}  // namespace hearth
