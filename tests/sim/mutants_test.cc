// SPDX-License-Identifier: Apache-2.0
// Switches on every seeded bug (tests/mutants/patches) in turn and expects the simulation to notice
// within a bounded number of seeds. Without arguments all of them; with numbers those.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "run_seed.h"
#include "testing/mutant.h"

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

// Random scenarios first; every so often one of the families that ask a single question.
constexpr uint64_t kMaxSeeds = 3000;
constexpr unsigned kMaxSeconds = 120;

// Bugs in what the scheduler never asks for (a Reserve without room, Trim), or in how well the
// cache guesses: tests/mutants/ plays these on the KV room alone.
constexpr int kLeftToTheRoom[] = {2, 10, 11, 15, 17, 18, 19};

struct Progress {
  uint64_t seed;
  Family family;
  char failure[400];
};

// number -> where it is
std::map<int, std::string> FindMutants() {
  std::map<int, std::string> found;
  const std::string mark = "HEARTH_MUTANT(";
  for (const char* room : {"kv", "engine"}) {
    for (const auto& entry :
         fs::directory_iterator(fs::path(HEARTH_SOURCE_DIR) / "tests/mutants/patches" / room)) {
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number) {
        const size_t at = line.find(mark);
        const int mutant = at == line.npos ? 0 : std::atoi(line.c_str() + at + mark.size());
        if (mutant == 0) continue;
        found[mutant] = std::string(room) + "/" + entry.path().filename().string() + ":" +
                        std::to_string(number);
      }
    }
  }
  return found;
}

// Plays seeds until one fails. In a process of its own: a bug may as well kill it.
void Hunt(int mutant, Progress& progress) {
  active_mutant = mutant;
  double polite_us = 0, flooded_us = 0;
  const auto play = [&](Family family, uint64_t seed) {
    progress.seed = seed;
    progress.family = family;
    SeedResult result = RunSeed(family, seed);
    polite_us += result.quiet_us[1];
    flooded_us += result.quiet_us[2];
    if (family == Family::kQuiet && seed >= 100 && flooded_us > 1.5 * polite_us) {
      result.failure = Printf("the quiet tenant waits %.2f times as long", flooded_us / polite_us);
    }
    if (result.failure.empty()) return;
    std::snprintf(progress.failure, sizeof progress.failure, "%s", result.failure.c_str());
    _exit(3);
  };
  for (uint64_t seed = 0; seed < kMaxSeeds; ++seed) {
    play(Family::kRandom, seed);
    if (seed % 10 == 0) play(Family::kChat, seed);
    if (seed % 20 == 0) play(Family::kStarvation, seed);
    if (seed % 20 == 10) play(Family::kLongPrompt, seed);
    if (seed % 20 == 5) play(Family::kShare, seed);
    if (seed % 20 == 15) play(Family::kQuiet, seed);
    if (seed % 20 == 1) play(Family::kTier, seed);
    if (seed % 20 == 2) play(Family::kSlowTier, seed);
    if (seed % 20 == 3) play(Family::kInLine, seed);
    if (seed % 20 == 4) play(Family::kBelow, seed);
    if (seed % 20 == 6) play(Family::kQuota, seed);
  }
  _exit(0);
}

bool IsCaught(int mutant, const std::string& where, Progress& progress) {
  progress = {};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    // What a dying child says is not news here.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(4);
    alarm(kMaxSeconds);
    Hunt(mutant, progress);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool survived = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const char* how = progress.failure;
  if (WIFSIGNALED(status)) how = WTERMSIG(status) == SIGALRM ? "hangs" : "stops the program";
  if (survived) how = "NOT CAUGHT";
  std::printf("mutant %2d  %-28s %-10s seed %-5llu %s\n", mutant, where.c_str(),
              NameOf(progress.family), static_cast<unsigned long long>(progress.seed), how);
  return !survived;
}

int Run(int argc, char** argv) {
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& progress = *static_cast<Progress*>(shared);
  std::map<int, std::string> mutants = FindMutants();
  if (argc > 1) {
    std::map<int, std::string> chosen;
    for (int i = 1; i < argc; ++i) chosen[std::atoi(argv[i])] = mutants[std::atoi(argv[i])];
    mutants = chosen;
  }
  if (argc == 1) {
    for (const int number : kLeftToTheRoom) mutants.erase(number);
  }
  int caught = 0;
  for (const auto& [number, where] : mutants) {
    caught += IsCaught(number, where, progress) ? 1 : 0;
  }
  const auto count = static_cast<int>(mutants.size());
  std::printf("%d of %d mutants caught\n", caught, count);
  if (argc > 1) return caught == count ? 0 : 1;
  // The program as written must pass where they fail.
  const bool clean = !IsCaught(0, "as written", progress);
  return clean && caught == count && count >= 20 ? 0 : 1;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) { return hearth::testing::Run(argc, argv); }
