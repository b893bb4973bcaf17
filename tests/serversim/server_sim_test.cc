// SPDX-License-Identifier: Apache-2.0
// Plays the whole server on many seeds, or one of them step by step.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "one_processor.h"
#include "play.h"
#include "testing/results.h"

namespace hearth::testing {
namespace {

unsigned long long playing = 0;

// Also when the program under test stopped it.
void OnAbort(int) {
  char text[160];
  const int size = std::snprintf(text, sizeof text,
                                 "seed %llu stopped the program\n"
                                 "replay: server_sim_seeds --seed %llu --trace\n",
                                 playing, playing);
  const ssize_t ignored = ::write(STDERR_FILENO, text, static_cast<size_t>(size));
  (void)ignored;
  ::signal(SIGABRT, SIG_DFL);
  ::abort();
}

bool Judge(uint64_t seed, const PlayResult& result) {
  if (result.failure.empty()) return true;
  std::printf("seed %llu: %s\nreplay: server_sim_seeds --seed %llu --trace\n",
              static_cast<unsigned long long>(seed), result.failure.c_str(),
              static_cast<unsigned long long>(seed));
  return false;
}

void Tell(const PlayCounts& counts, uint64_t seeds, double seconds) {
  const auto show = [](const char* name, int64_t value) {
    std::printf("  %-16s %lld\n", name, static_cast<long long>(value));
  };
  std::printf("%llu seeds, %.0f virtual s\n", static_cast<unsigned long long>(seeds), seconds);
  show("requests", counts.asks);
  show("whole replies", counts.whole);
  show("streams", counts.streamed);
  show("refused", counts.refused);
  show("ended badly", counts.failed);
  show("unanswered", counts.unanswered);
  show("clients left", counts.left);
  show("kept responses", counts.stored);
  show("background", counts.background);
  show("cancelled", counts.cancelled);
  show("cut for memory", counts.cut);
  show("drains", counts.drained);
  show("failed steps", counts.failed_steps);
  show("store failures", counts.store_failures);
  show("preemptions", counts.preempted);
  show("switches", counts.switches);
}

int Run(int argc, char** argv) {
  uint64_t first = 0, count = 100, every = 1;
  bool is_tracing = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--trace") {
      is_tracing = true;
      continue;
    }
    const uint64_t value = i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0;
    if (flag == "--first") first = value;
    if (flag == "--count") count = value;
    if (flag == "--every") every = value;
    if (flag == "--seed") {
      first = value;
      count = 1;
    }
  }
  ::signal(SIGABRT, OnAbort);
  StayOnOneProcessor();
  // What libraries do once in a process is done before seeds are compared.
  for (uint64_t seed = 0; seed < 8; ++seed) Play(playing = seed);
  PlayCounts total;
  int64_t us = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t seed = playing = first + i * every;
    const PlayResult result = Play(seed, is_tracing);
    if (!Judge(seed, result)) return 1;
    total.Add(result.counts);
    us += result.us;
    // Nothing but the seed decides.
    if (i % 64 == 0 && Play(seed, is_tracing).digest != result.digest) {
      std::printf("seed %llu: played differently\n", static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  Tell(total, count, static_cast<double>(us) * 1e-6);
  const auto seeds = static_cast<int64_t>(count);
  const bool is_written =
      WriteResults("server_seeds_" + std::to_string(first), HEARTH_VERSION, seeds,
                   {{"seeds", seeds}, {"requests", total.asks}, {"switches", total.switches}});
  return is_written ? 0 : 1;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) { return hearth::testing::Run(argc, argv); }
