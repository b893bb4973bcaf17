// SPDX-License-Identifier: Apache-2.0
// Runs checks in a child process with one planted bug switched on: a bug may stop the process, loop
// or corrupt its memory, and all of that counts as being noticed.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "testing/mutant.h"
namespace hearth::testing {

enum class MutantFate { kUnnoticed, kReported, kDied };

// `checks` returns what it found wrong, or an empty string. What it says goes to stderr.
inline MutantFate RunMutant(int number, const std::function<std::string()>& checks) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    active_mutant = number;
    alarm(120);
    const std::string wrong = checks();
    if (!wrong.empty()) std::fprintf(stderr, "mutant %d: %s\n", number, wrong.c_str());
    _exit(wrong.empty() ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return MutantFate::kUnnoticed;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return MutantFate::kUnnoticed;
  return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? MutantFate::kReported : MutantFate::kDied;
}

}  // namespace hearth::testing
