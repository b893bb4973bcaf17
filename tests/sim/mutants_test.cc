// SPDX-License-Identifier: Apache-2.0
// Switches on every seeded bug (tests/mutants/patches) in turn and expects the simulation to notice
// within a bounded number of seeds. Without arguments all of them; with numbers those.
#include "run_seed.h"
#include "testing/hunt.h"

namespace hearth::testing {
namespace {

constexpr uint64_t kMaxSeeds = 3000;

// Bugs in what the scheduler never asks for (a Reserve without room, Trim), or in how well the
// cache guesses: tests/mutants/ plays these on the KV room alone.
const std::vector<int> kLeftToTheRoom = {2, 10, 11, 15, 17, 18, 19};

// Random scenarios first; every so often one of the families that ask a single question.
struct Turn {
  Family family;
  uint64_t every, at;
};
constexpr Turn kTurns[] = {
    {Family::kRandom, 1, 0},       {Family::kChat, 10, 0},     {Family::kStarvation, 20, 0},
    {Family::kTier, 20, 1},        {Family::kSlowTier, 20, 2}, {Family::kInLine, 20, 3},
    {Family::kBelow, 20, 4},       {Family::kShare, 20, 5},    {Family::kQuota, 20, 6},
    {Family::kLongPrompt, 20, 10}, {Family::kQuiet, 20, 15},   {Family::kNewcomer, 20, 7},
    {Family::kNewcomer, 20, 8},
};

void PlaySeeds(int /*mutant*/, HuntProgress& progress) {
  double polite_us = 0, flooded_us = 0;
  for (uint64_t seed = 0; seed < kMaxSeeds; ++seed) {
    for (const Turn& turn : kTurns) {
      if (seed % turn.every != turn.at) continue;
      progress.Begin(seed, NameOf(turn.family));
      const SeedResult result = RunSeed(turn.family, seed);
      if (!result.failure.empty()) return progress.Fail(result.failure);
      polite_us += result.quiet_us[1];
      flooded_us += result.quiet_us[2];
      if (turn.family == Family::kQuiet && seed >= 100 && flooded_us > 1.5 * polite_us) {
        return progress.Fail(
            Printf("the quiet tenant waits %.2f times as long", flooded_us / polite_us));
      }
    }
  }
}

int Main(int argc, char** argv) {
  const Hunt hunt{.folders = {"kv", "engine"}, .left_out = kLeftToTheRoom, .play = PlaySeeds};
  const HuntOutcome outcome = Run(hunt, NumbersOf(argc, argv));
  const bool passed = outcome.is_clean && outcome.caught == outcome.planted;
  return passed && (argc > 1 || outcome.planted >= 20) ? 0 : 1;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) { return hearth::testing::Main(argc, argv); }
