// SPDX-License-Identifier: Apache-2.0
// Every CUDA kernel on some machine against the scalar CPU kernels, bit by bit. A check returns
// what it found wrong, or an empty string; tests of the kernels, of planted bugs and of PTX share
// them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"
namespace hearth::cuda {

enum class Grid {
  kTiny,   // seconds for all planted bugs
  kSmall,  // CI
  kFull,   // nightly
};

struct Check {
  const char* name;
  std::string (*run)(Machine& machine, Grid grid);
};
std::string CheckNorm(Machine& machine, Grid grid);
std::string CheckGlu(Machine& machine, Grid grid);
std::string CheckRope(Machine& machine, Grid grid);
std::string CheckAttention(Machine& machine, Grid grid);
std::string CheckRoute(Machine& machine, Grid grid);
std::string CheckMxfp4(Machine& machine, Grid grid);
std::string CheckQ8(Machine& machine, Grid grid);
std::string CheckGrouped(Machine& machine, Grid grid);
std::string CheckFloats(Machine& machine, Grid grid);
std::string CheckEmbed(Machine& machine, Grid grid);
std::string CheckExperts(Machine& machine, Grid grid);

// Exp and silu as kernels have them against cpu/canon.inl; the same on every machine.
std::string CheckElementary(Machine& machine, Grid grid);

inline constexpr Check kChecks[] = {
    {"norm", CheckNorm},       {"glu", CheckGlu},
    {"rope", CheckRope},       {"attention", CheckAttention},
    {"route", CheckRoute},     {"mxfp4", CheckMxfp4},
    {"q8", CheckQ8},           {"grouped", CheckGrouped},
    {"floats", CheckFloats},   {"embed", CheckEmbed},
    {"experts", CheckExperts}, {"elementary", CheckElementary},
};

// Values compared since the process started.
int64_t NumCompared();
void CountCompared(int64_t count);

}  // namespace hearth::cuda
