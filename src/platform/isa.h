// SPDX-License-Identifier: Apache-2.0
// Which instructions this processor and operating system let us use.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// Levels, slowest first; there is a table of kernels for each. Each contains the ones before it,
// except that AVX-512 does not imply kAvxVnni.
enum class Isa : unsigned char {
  kScalar,      // x86-64 as it always was
  kAvx2,        // x86-64-v3: AVX2, FMA, F16C
  kAvxVnni,     // kAvx2 and AVX-VNNI
  kAvx512Vnni,  // AVX-512 F/BW/VL/DQ and VNNI
  kAvx512,      // the above and VBMI
  kAmx,         // the above and AMX-INT8, with the kernel's permission to use tiles
};
inline constexpr int kNumIsas = static_cast<int>(Isa::kAmx) + 1;
const char* NameOf(Isa isa);
std::optional<Isa> IsaNamed(std::string_view name);
std::string IsaNames();  // "scalar, avx2, ... or amx"

// The highest level that works here. Asks the operating system for the tile registers, once per
// process; threads started later inherit the permission.
Isa BestIsa();
// Every level that works here, lowest first; BestIsa() is the last.
std::vector<Isa> SupportedIsas();
bool HasIsa(Isa isa);

}  // namespace hearth
