// SPDX-License-Identifier: Apache-2.0
// A machine in a short description, as people write it: "2x8 cores, 2x8ch DDR5-4800, avx512".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
namespace hearth {

struct MachineText {
  int sockets = 1, cores = 0;      // of all sockets
  double memory_rate = 0;          // bytes per second by the modules' label, of all sockets
  std::string isa;                 // empty: not said
  std::optional<double> clock_hz;  // of all cores at work
  uint64_t memory_bytes = 0;       // 0: not said
};

// Parts in any order, separated by commas: cores, memory ("8ch DDR5-4800" or "300 GB/s"), an
// instruction set, "256 GB", "2.4 GHz". kInvalid names the part that is not understood or missing.
Result<MachineText> ParseMachine(std::string_view text);

// What a machine can do, for judging one by another.
struct MachineRates {
  double stream = 0;  // bytes per second that all threads read together
  double int8 = 0;    // operations per second
  int threads = 1;
};

// What of the label a stream of reads gets, on machines that were measured: 75 to 85 %.
inline constexpr double kShareOfLabel = 0.8;
// One process on several sockets: each reads its own weights, but activations, K and V cross the
// link between them. Computed, not measured.
inline constexpr double kShareAcrossSockets = 0.9;

// The rates of a described machine from those measured here with the same kernels: arithmetic by
// cores and clock (`clock_here`, or 0 when unknown: then as here), memory by its label, and no more
// than the cores can draw when each draws what one draws here.
MachineRates RatesOf(const MachineText& machine, const MachineRates& here, double clock_here);

}  // namespace hearth
