// SPDX-License-Identifier: Apache-2.0
// Seeded bugs that tests switch on one at a time to prove that they would notice. Only the programs
// under tests/mutants/ are compiled with HEARTH_MUTANTS; everywhere else a mutant is a constant.
// Numbers: 1-19 src/kv, 20-49 src/engine.
#pragma once

namespace hearth {
inline int active_mutant = 0;  // set by such a program; 0 = the code as written
}

#ifdef HEARTH_MUTANTS
#define HEARTH_MUTANT(number) (::hearth::active_mutant == (number))
#else
#define HEARTH_MUTANT(number) false
#endif
