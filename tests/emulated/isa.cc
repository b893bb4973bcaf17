// SPDX-License-Identifier: Apache-2.0
// platform/isa.cc of the emulated build: every level works, as the instructions that the machine
// lacks are functions here. What remains native is AVX-512 with VNNI.
#include <cstdio>
#define BestIsa NativeBestIsa
#define SupportedIsas NativeIsas
#define HasIsa NativeHasIsa
#include "../../src/platform/isa.cc"
#undef BestIsa
#undef SupportedIsas
#undef HasIsa

namespace hearth {

std::vector<Isa> SupportedIsas() {
  if (!NativeHasIsa(Isa::kAvx512Vnni)) return NativeIsas();
  std::vector<Isa> isas;
  for (int i = 0; i < kNumIsas; ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}

Isa BestIsa() { return SupportedIsas().back(); }

bool HasIsa(Isa isa) { return NativeHasIsa(Isa::kAvx512Vnni) || NativeHasIsa(isa); }

}  // namespace hearth
