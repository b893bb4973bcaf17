// SPDX-License-Identifier: Apache-2.0
// platform/isa.cc of the emulated build: the highest level works, as its instructions are functions
// here. What remains native is AVX-512 with VNNI.
#include <cstdio>
#define BestIsa NativeBestIsa
#define SupportedIsas NativeIsas
#include "../../src/platform/isa.cc"
#undef BestIsa
#undef SupportedIsas

namespace hearth {

Isa BestIsa() {
  static const bool has_vnni = __builtin_cpu_supports("avx512bw") != 0 &&
                               __builtin_cpu_supports("avx512vl") != 0 &&
                               __builtin_cpu_supports("avx512vnni") != 0;
  return has_vnni ? Isa::kAmx : NativeBestIsa();
}

std::vector<Isa> SupportedIsas() {
  if (BestIsa() != Isa::kAmx) return NativeIsas();
  return {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx};
}

}  // namespace hearth
