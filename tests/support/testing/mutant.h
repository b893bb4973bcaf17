// SPDX-License-Identifier: Apache-2.0
// Planted bugs that tests switch on one at a time to prove that they would notice. The patches
// under tests/mutants/patches put them into copies of the sources (cmake/mutants.cmake); the
// program itself has none. Numbers: 1-19 src/kv, 20-49 src/engine, 50-69 and 180-199 tiers in
// both, 70-119 the server (patches/serversim), 120-179 src/cuda, 200-209 resuming
// (patches/resume), 210-229 src/gpu.
#pragma once

namespace hearth {
inline int active_mutant = 0;  // set by the test; 0 = the code as written
}

#define HEARTH_MUTANT(number) (::hearth::active_mutant == (number))
