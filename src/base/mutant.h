// SPDX-License-Identifier: Apache-2.0
// Seeded bugs that tests switch on one at a time to prove that they would notice. Only the programs
// under tests/mutants/ are compiled with HEARTH_MUTANTS; everywhere else a mutant is a constant.
// Numbers: 1-19 src/kv, 20-49 src/engine.
#pragma once

#ifdef HEARTH_MUTANTS
namespace hearth {
inline int active_mutant = 0;  // 0 = the program as written
}
#define HEARTH_MUTANT(number) (::hearth::active_mutant == (number))
#else
#define HEARTH_MUTANT(number) false
#endif
