// SPDX-License-Identifier: Apache-2.0
// Switches on every planted bug of some folders in turn and lets a simulation play seeds until it
// notices. Each bug runs in a process of its own: it may as well kill it, or never end.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testing/mutant.h"
namespace hearth::testing {

// How far a child came: shared memory, because the child may not live to tell.
struct HuntProgress {
  uint64_t seed;
  const char* scenario;  // a literal, so it means the same in both processes
  char failure[400];
  static constexpr unsigned kSecondsPerSeed = 30;

  // A seed takes milliseconds: one that does not end hangs. (An alarm over all seeds would take a
  // slow machine for a bug that was caught.)
  void Begin(uint64_t next, const char* what) {
    seed = next;
    scenario = what;
    alarm(kSecondsPerSeed);
  }
  void Fail(const std::string& why) { std::snprintf(failure, sizeof failure, "%s", why.c_str()); }
};

struct Hunt {
  std::vector<std::string> folders;  // below tests/mutants/patches
  std::vector<int> left_out;         // unless they are asked for by number
  // Plays until something is wrong, and says so with Fail. `mutant` is 0 for the program as
  // written.
  std::function<void(int mutant, HuntProgress& progress)> play;
};

struct HuntOutcome {
  int planted = 0;
  int caught = 0;
  bool is_clean = false;  // the program as written passes where they fail
};

// number -> the patch that plants it
inline std::map<int, std::string> FindMutants(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  const std::string mark = "HEARTH_MUTANT(";
  const fs::path root = fs::path(HEARTH_SOURCE_DIR) / "tests/mutants/patches";
  std::map<int, std::string> found;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        const size_t at = line.find(mark);
        const int number = at == line.npos ? 0 : std::atoi(line.c_str() + at + mark.size());
        if (number == 0) continue;
        found[number] = fs::relative(entry.path(), root).replace_extension().string();
      }
    }
  }
  return found;
}

inline bool IsCaught(const Hunt& hunt, int mutant, const std::string& where,
                     HuntProgress& progress) {
  progress = {.seed = 0, .scenario = "", .failure = ""};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    // What a dying child says is not news here.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(4);
    active_mutant = mutant;
    hunt.play(mutant, progress);
    _exit(progress.failure[0] == 0 ? 0 : 3);
  }
  int status = 0;
  const bool survived = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                        WEXITSTATUS(status) == 0;
  const char* how = progress.failure;
  if (WIFSIGNALED(status)) how = WTERMSIG(status) == SIGALRM ? "hangs" : "stops the program";
  if (survived) how = "NOT CAUGHT";
  std::printf("mutant %3d  %-40s %-10s seed %-5llu %.90s\n", mutant, where.c_str(),
              progress.scenario, static_cast<unsigned long long>(progress.seed), how);
  return !survived;
}

// `chosen`: only these, and the program as written is taken for clean.
inline HuntOutcome Run(const Hunt& hunt, const std::vector<int>& chosen) {
  void* shared = mmap(nullptr, sizeof(HuntProgress), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {};
  auto& progress = *static_cast<HuntProgress*>(shared);
  std::map<int, std::string> mutants = FindMutants(hunt.folders);
  if (chosen.empty()) {
    for (const int number : hunt.left_out) mutants.erase(number);
  } else {
    std::map<int, std::string> few;
    for (const int number : chosen) {
      if (mutants.contains(number))
        few[number] = mutants[number];
      else
        std::printf("no patch plants mutant %d\n", number);
    }
    mutants = few;
  }
  HuntOutcome outcome;
  outcome.planted = static_cast<int>(chosen.empty() ? mutants.size() : chosen.size());
  for (const auto& [number, where] : mutants) {
    outcome.caught += IsCaught(hunt, number, where, progress) ? 1 : 0;
  }
  std::printf("%d of %d mutants caught\n", outcome.caught, outcome.planted);
  outcome.is_clean = !chosen.empty() || !IsCaught(hunt, 0, "as written", progress);
  return outcome;
}

inline std::vector<int> NumbersOf(int argc, char** argv) {
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
  return numbers;
}

}  // namespace hearth::testing
