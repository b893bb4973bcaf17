// SPDX-License-Identifier: Apache-2.0
// The flags --isa and --threads of commands that compute.
#pragma once
#include <CLI/CLI.hpp>

#include "app/flag_checks.h"
#include "app/open_backend.h"
namespace hearth {

inline CLI::Option* AddIsa(CLI::App& sub, BackendFlags& hardware) {
  return sub.add_option(
      "--isa", hardware.isa,
      "Instruction set: scalar, avx2, avx512 or amx; default: the best this CPU has");
}

inline CLI::Option* AddThreads(CLI::App& sub, BackendFlags& hardware) {
  return sub
      .add_option("--threads", hardware.num_threads,
                  "Number of threads; default: one per core that the cgroup allows")
      ->check(Between(1, 1024));
}

}  // namespace hearth
