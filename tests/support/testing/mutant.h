// SPDX-License-Identifier: Apache-2.0
// Planted bugs that tests switch on one at a time: tests/mutants/patches. Numbers: 1-19 kv, 20-49
// engine, 50-69 and 180-199 tiers, 70-119 server, 120-179 cuda, 200-209 and 270-275 resuming,
// 210-221 gpu, 222-239 both, 260-267 loads, 300-309 ages, 310-318 confine, 320-329 memory, 340-346
// terminal.
#pragma once

namespace hearth {
inline int active_mutant = 0;  // set by the test; 0 = the code as written
}

#define HEARTH_MUTANT(number) (::hearth::active_mutant == (number))
