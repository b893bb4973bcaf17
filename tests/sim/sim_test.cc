// SPDX-License-Identifier: Apache-2.0
// Plays seeds and stops at the first whose promises are broken, with the command that replays it:
//   sim_test [FAMILY] --first N --count N [--every N]     many
//   sim_test [FAMILY] --seed N [--trace]                   one
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "run_seed.h"

namespace hearth::testing {
namespace {

struct Flags {
  Family family = Family::kRandom;
  uint64_t first = 0, count = 1000, every = 1;
  bool traces = false;
  std::string program;
};

char g_replay[256];  // what OnAbort prints; written before each seed

void OnAbort(int) {
  const ssize_t ignored = write(STDERR_FILENO, g_replay, strlen(g_replay));
  static_cast<void>(ignored);
}

bool ReadNumber(const char* text, uint64_t& out) {
  const char* end = text + strlen(text);
  const auto [stop, error] = std::from_chars(text, end, out);
  return error == std::errc() && stop == end;
}

bool ReadFlags(int argc, char** argv, Flags& flags) {
  flags.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    bool known = false;
    for (const Family family : kFamilies) {
      if (word != NameOf(family)) continue;
      flags.family = family;
      known = true;
    }
    if (word == "--trace") known = flags.traces = true;
    if (known) continue;
    uint64_t number = 0;
    if (i + 1 == argc || !ReadNumber(argv[i + 1], number)) return false;
    ++i;
    if (word == "--first") {
      flags.first = number;
    } else if (word == "--count") {
      flags.count = number;
    } else if (word == "--every") {
      flags.every = number;
    } else if (word == "--seed") {
      flags.first = number;
      flags.count = 1;
    } else {
      return false;
    }
  }
  return true;
}

void PrintTrace(int64_t now_us, const std::string& what) {
  std::printf("%12.3f ms  %s\n", static_cast<double>(now_us) * 1e-3, what.c_str());
}

// The quiet tenant's wait, summed over all seeds: one request more or less in its way decides
// nothing. A busy machine is slower for everybody; a flood must not make it worse than that.
int JudgeQuiet(const double (&us)[3]) {
  std::printf(
      "quiet tenant, until the first token: %.2f times as long beside a polite neighbour, "
      "%.2f beside a flood, which is %.2f times the polite one\n",
      us[1] / us[0], us[2] / us[0], us[2] / us[1]);
  if (us[2] <= 1.5 * us[1]) return 0;
  std::printf("FAILED: more than 1.5\n");
  return 1;
}

void PrintCounts(const Flags& flags, const SimCounts& counts, double seconds) {
  const auto print = [](const char* what, int64_t count) {
    std::printf(" %s %lld,", what, static_cast<long long>(count));
  };
  std::printf("%s: %llu seeds in %.1f s:", NameOf(flags.family),
              static_cast<unsigned long long>(flags.count), seconds);
  print("clients", counts.clients);
  print("refused", counts.refused);
  for (size_t i = 1; i < counts.finishes.size(); ++i) {
    print(hearth::NameOf(static_cast<Finish>(i)), counts.finishes[i]);
  }
  print("paused", counts.paused);
  print("draft tokens", counts.drafted);
  print("draft tokens accepted", counts.accepted);
  print("preemptions", counts.preemptions);
  print("cached tokens", counts.cached);
  print("of those loaded from a tier", counts.loaded);
  print("failed steps", counts.failed_steps);
  print("steps", counts.steps);
  std::printf(" tokens %lld\n", static_cast<long long>(counts.tokens));
}

int Run(const Flags& flags) {
  const auto start = std::chrono::steady_clock::now();
  SimCounts counts;
  double quiet_us[3] = {};
  if (flags.traces) std::printf("%s", Describe(RandomScenario(flags.first)).c_str());
  for (uint64_t i = 0; i < flags.count; ++i) {
    const uint64_t seed = flags.first + i * flags.every;
    std::snprintf(g_replay, sizeof g_replay, "\nreplay with: %s %s --seed %llu --trace\n",
                  flags.program.c_str(), NameOf(flags.family),
                  static_cast<unsigned long long>(seed));
    const SeedResult result =
        RunSeed(flags.family, seed, flags.traces ? PrintTrace : Simulation::Trace());
    if (!result.failure.empty()) {
      std::printf("FAILED: seed %llu of family %s: %s%s", static_cast<unsigned long long>(seed),
                  NameOf(flags.family), result.failure.c_str(), g_replay);
      return 1;
    }
    counts.Add(result.counts);
    for (size_t k = 0; k < 3; ++k) quiet_us[k] += result.quiet_us[k];
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PrintCounts(flags, counts, seconds);
  return flags.family == Family::kQuiet ? JudgeQuiet(quiet_us) : 0;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) {
  hearth::testing::Flags flags;
  if (!hearth::testing::ReadFlags(argc, argv, flags)) {
    std::fprintf(stderr,
                 "usage: sim_test "
                 "[random|starvation|long|chat|quiet|share|prompts|tier|slow|inline|below|quota] "
                 "[--first N] [--count N] "
                 "[--every N] [--seed N] [--trace]\n");
    return 2;
  }
  signal(SIGABRT, hearth::testing::OnAbort);
  return hearth::testing::Run(flags);
}
