// SPDX-License-Identifier: Apache-2.0
// Switches on every seeded bug of the server (tests/mutants/patches/serversim) in turn and expects
// the simulation to notice within a bounded number of seeds. With numbers: those alone.
#include "one_processor.h"
#include "play.h"
#include "testing/hunt.h"
#include "testing/results.h"

namespace hearth::testing {
namespace {

constexpr uint64_t kMaxSeeds = 3000;
// The program as written is played on 20,000 seeds beside this.
constexpr uint64_t kCleanSeeds = 200;

void PlaySeeds(int mutant, HuntProgress& progress) {
  const uint64_t count = mutant == 0 ? kCleanSeeds : kMaxSeeds;
  for (uint64_t seed = 0; seed < count; ++seed) {
    progress.Begin(seed, "");
    const PlayResult result = Play(seed);
    if (!result.failure.empty()) return progress.Fail(result.failure);
  }
}

int Main(int argc, char** argv) {
  StayOnOneProcessor();
  const Hunt hunt{.folders = {"serversim"}, .left_out = {}, .play = PlaySeeds};
  const HuntOutcome outcome = Run(hunt, NumbersOf(argc, argv));
  const bool passed = outcome.is_clean && outcome.caught == outcome.planted;
  if (argc > 1) return passed ? 0 : 1;
  if (!WriteResults("server_mutants", HEARTH_VERSION, outcome.planted,
                    {{"planted", outcome.planted}, {"caught", outcome.caught}}))
    return 1;
  return passed && outcome.planted >= 20 ? 0 : 1;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) { return hearth::testing::Main(argc, argv); }
