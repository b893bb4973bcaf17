// SPDX-License-Identifier: Apache-2.0
// Switches on every seeded bug of the server (tests/mutants/patches/serversim) in turn and expects
// the simulation to notice within a bounded number of seeds. With numbers: those alone.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "one_processor.h"
#include "play.h"
#include "testing/mutant.h"
#include "testing/results.h"

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxSeeds = 3000;
constexpr unsigned kMaxSeconds = 60;
// The program as written is played on 20,000 seeds beside this.
constexpr uint64_t kCleanSeeds = 200;

struct Progress {
  uint64_t seed;
  char failure[200];
};

// number -> where it is
std::map<int, std::string> FindMutants() {
  std::map<int, std::string> found;
  const std::string mark = "HEARTH_MUTANT(";
  const fs::path root = fs::path(HEARTH_SOURCE_DIR) / "tests/mutants/patches/serversim";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    std::string line;
    while (std::getline(in, line)) {
      const size_t at = line.find(mark);
      if (at == line.npos) continue;
      found[std::atoi(line.c_str() + at + mark.size())] =
          fs::relative(entry.path(), root).replace_extension().string();
    }
  }
  return found;
}

// Plays seeds until one fails. In a process of its own: a bug may as well kill it.
void Hunt(int mutant, Progress& progress) {
  active_mutant = mutant;
  const uint64_t count = mutant == 0 ? kCleanSeeds : kMaxSeeds;
  for (uint64_t seed = 0; seed < count; ++seed) {
    progress.seed = seed;
    const PlayResult result = Play(seed);
    if (result.failure.empty()) continue;
    std::snprintf(progress.failure, sizeof progress.failure, "%s", result.failure.c_str());
    _exit(3);
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
  std::printf("mutant %3d  %-34s seed %-5llu %.90s\n", mutant, where.c_str(),
              static_cast<unsigned long long>(progress.seed), how);
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
  StayOnOneProcessor();
  int caught = 0;
  for (const auto& [number, where] : mutants) {
    caught += IsCaught(number, where, progress) ? 1 : 0;
  }
  const auto count = static_cast<int>(mutants.size());
  std::printf("%d of %d mutants caught\n", caught, count);
  if (argc > 1) return caught == count ? 0 : 1;
  const bool clean = !IsCaught(0, "as written", progress);
  if (!WriteResults("server_mutants", HEARTH_VERSION, count,
                    {{"planted", count}, {"caught", caught}}))
    return 1;
  return clean && caught == count && count >= 20 ? 0 : 1;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) { return hearth::testing::Run(argc, argv); }
