// SPDX-License-Identifier: Apache-2.0
#include "platform/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "platform/missing.h"

namespace hearth {
namespace {

constexpr const char* kNames[] = {"scalar", "avx2", "avxvnni", "avx512vnni", "avx512", "amx"};
static_assert(std::size(kNames) == kNumIsas);

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers CpuId(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return Registers();
  return r;
}

bool Bits(uint32_t word, std::initializer_list<int> bits) {
  for (const int bit : bits) {
    if ((word >> bit & 1) == 0) return false;
  }
  return true;
}

// Which register files the operating system saves for us; without OSXSAVE, none.
uint64_t SavedState() {
  if (!Bits(CpuId(1, 0).c, {27})) return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Linux hands out the 8 KiB of tile registers only to processes that ask.
bool TilePermission() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::vector<Isa> Detect() {
  std::vector<Isa> isas = {Isa::kScalar};
  const Registers one = CpuId(1, 0), seven = CpuId(7, 0);
  const uint64_t saved = SavedState();
  const bool avx = (saved & 0x6) == 0x6;
  // FMA 12, F16C 29, MOVBE 22 and POPCNT 23; AVX2 5, BMI1 3, BMI2 8.
  if (!avx || !Bits(one.c, {12, 22, 23, 29}) || !Bits(seven.b, {3, 5, 8})) return isas;
  isas.push_back(Isa::kAvx2);
  // AVX-VNNI 4.
  if (seven.a >= 1 && Bits(CpuId(7, 1).a, {4})) isas.push_back(Isa::kAvxVnni);
  const bool zmm = (saved & 0xe6) == 0xe6;
  // F 16, DQ 17, BW 30, VL 31; VNNI 11.
  if (!zmm || !Bits(seven.b, {16, 17, 30, 31}) || !Bits(seven.c, {11})) return isas;
  isas.push_back(Isa::kAvx512Vnni);
  // VBMI 1.
  if (!Bits(seven.c, {1})) return isas;
  isas.push_back(Isa::kAvx512);
  const bool tiles = (saved & 0x60000) == 0x60000;
  // AMX-TILE 24, AMX-INT8 25.
  if (!tiles || !Bits(seven.d, {24, 25})) return isas;
  if (TilePermission()) {
    isas.push_back(Isa::kAmx);
  } else {
    NoteMissing("AMX is refused by the system: prompts are read with AVX-512 instead");
  }
  return isas;
}

}  // namespace

const char* NameOf(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

std::optional<Isa> IsaNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

std::string IsaNames() {
  std::string names = kNames[0];
  for (int i = 1; i < kNumIsas; ++i) {
    names += i + 1 < kNumIsas ? ", " : " or ";
    names += kNames[i];
  }
  return names;
}

std::vector<Isa> SupportedIsas() {
  static const std::vector<Isa> isas = Detect();
  return isas;
}

Isa BestIsa() { return SupportedIsas().back(); }

bool HasIsa(Isa isa) {
  const std::vector<Isa> isas = SupportedIsas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

}  // namespace hearth
