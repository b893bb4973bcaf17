// SPDX-License-Identifier: Apache-2.0
// Which instructions this processor and operating system let us use.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

namespace hearth {

// Levels, each containing the ones before it. kernels exist once per level.
enum class Isa : unsigned char {
  kScalar,  // x86-64 as it always was
  kAvx2,    // x86-64-v3: AVX2, FMA, F16C
  kAvx512,  // AVX-512 F/BW/VL/DQ, VBMI and VNNI
  kAmx,     // the above and AMX-INT8, with the kernel's permission to use tiles
};
const char* NameOf(Isa isa);
std::optional<Isa> IsaNamed(std::string_view name);

// The highest level that works here. Asks the operating system for the tile registers, once per
// process; threads started later inherit the permission.
Isa BestIsa();
// Every level up to BestIsa(), lowest first.
std::vector<Isa> SupportedIsas();

}  // namespace hearth
