// SPDX-License-Identifier: Apache-2.0
// Every CUDA kernel on some machine against the scalar CPU kernels, bit by bit. A check returns
// what it found wrong, or an empty string; tests of the kernels, of planted bugs and of PTX share
// them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "proof/machine.h"
namespace hearth::cuda {

enum class CaseGrid {
  kTiny,   // seconds for all planted bugs
  kSmall,  // CI
  kFull,   // nightly
};

struct Check {
  const char* name;
  std::string (*run)(Machine& machine, CaseGrid grid);
};
std::string CheckNorm(Machine& machine, CaseGrid grid);
std::string CheckGlu(Machine& machine, CaseGrid grid);
std::string CheckRope(Machine& machine, CaseGrid grid);
std::string CheckAttention(Machine& machine, CaseGrid grid);
std::string CheckDecode(Machine& machine, CaseGrid grid);
std::string CheckRoute(Machine& machine, CaseGrid grid);
std::string CheckNormRoute(Machine& machine, CaseGrid grid);
std::string CheckMxfp4(Machine& machine, CaseGrid grid);
std::string CheckQ8(Machine& machine, CaseGrid grid);
std::string CheckBlocks(Machine& machine, CaseGrid grid);  // Q4_0 to Q5_1 and IQ4_NL
std::string CheckSupers(Machine& machine, CaseGrid grid);  // K-quants and IQ4_XS
std::string CheckChosen(Machine& machine, CaseGrid grid);
std::string CheckGrouped(Machine& machine, CaseGrid grid);
std::string CheckFloats(Machine& machine, CaseGrid grid);
std::string CheckEmbed(Machine& machine, CaseGrid grid);
std::string CheckExperts(Machine& machine, CaseGrid grid);
std::string CheckTop(Machine& machine, CaseGrid grid);
// Not bit by bit: within twice the error of FP16 on the CPU.
std::string CheckFlash(Machine& machine, CaseGrid grid);

// Exp and silu as kernels have them against cpu/canon.inl; the same on every machine.
std::string CheckElementary(Machine& machine, CaseGrid grid);

inline constexpr Check kChecks[] = {
    {"norm", CheckNorm},
    {"glu", CheckGlu},
    {"rope", CheckRope},
    {"attention", CheckAttention},
    {"decode", CheckDecode},
    {"route", CheckRoute},
    {"norm and route", CheckNormRoute},
    {"mxfp4", CheckMxfp4},
    {"q8", CheckQ8},
    {"blocks", CheckBlocks},
    {"supers", CheckSupers},
    {"grouped", CheckGrouped},
    {"chosen", CheckChosen},
    {"floats", CheckFloats},
    {"embed", CheckEmbed},
    {"experts", CheckExperts},
    {"top", CheckTop},
    {"flash", CheckFlash},
    {"elementary", CheckElementary},
};

// Values compared since the process started.
int64_t NumCompared();
void CountCompared(int64_t count);

}  // namespace hearth::cuda
