// SPDX-License-Identifier: Apache-2.0
// The parts of a table that have a file of their own, one function per file. An Add... function
// puts its products into the table.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

// Formats whose products are made from one template.
template <PackKind... kKinds>
struct KindList {
  // Calls f.operator()<kKind>() for each.
  template <class F>
  static void ForEach(F&& f) {
    (f.template operator()<kKinds>(), ...);
  }
};
using SuperKinds = KindList<PackKind::kQ2K, PackKind::kQ3K, PackKind::kQ4K, PackKind::kQ5K,
                            PackKind::kQ6K, PackKind::kIq4Xs>;
using BlockKinds =
    KindList<PackKind::kQ4_0, PackKind::kQ4_1, PackKind::kQ5_0, PackKind::kQ5_1, PackKind::kIq4Nl>;

void AddScalarFloats(KernelTable& table) noexcept;
void AddAvx512Floats(KernelTable& table) noexcept;
void AddAvx2Floats(KernelTable& table) noexcept;
void AddScalarAttend(KernelTable& table) noexcept;
void AddScalarSupers(KernelTable& table) noexcept;
void AddScalarBlocks(KernelTable& table) noexcept;
void AddAmxSupers(KernelTable& table) noexcept;
void AddAvx512Blocks(KernelTable& table) noexcept;
void AddAvx512Tiles(KernelTable& table) noexcept;
void AddAvx512TilesBytes(KernelTable& table) noexcept;
void AddAvx512TilesSuper(KernelTable& table) noexcept;
void AddAvx512Attend(KernelTable& table) noexcept;
void AddAvx2Attend(KernelTable& table) noexcept;
void AddAvx512AttendInt8(KernelTable& table) noexcept;

// From files that are compiled for two levels.
template <bool kVnni>
void AddAvx2Matmuls(KernelTable& table) noexcept;
template <bool kVnni>
void AddAvx2Blocks(KernelTable& table) noexcept;
template <bool kVnni>
void AddAvx2Supers(KernelTable& table) noexcept;
template <bool kVnni>
void AddAvx2Tiles(KernelTable& table) noexcept;
template <bool kVnni>
void AddAvx2TilesBytes(KernelTable& table) noexcept;
template <bool kVnni>
void AddAvx2TilesSuper(KernelTable& table) noexcept;
template <bool kVnni>
void AddAvx2AttendInt8(KernelTable& table) noexcept;
template <bool kVbmi>
void AddAvx512Matmuls(KernelTable& table) noexcept;
template <bool kVbmi>
void AddAvx512Supers(KernelTable& table) noexcept;

template <>
void AddAvx2Matmuls<false>(KernelTable& table) noexcept;
template <>
void AddAvx2Matmuls<true>(KernelTable& table) noexcept;
template <>
void AddAvx2Blocks<false>(KernelTable& table) noexcept;
template <>
void AddAvx2Blocks<true>(KernelTable& table) noexcept;
template <>
void AddAvx2Supers<false>(KernelTable& table) noexcept;
template <>
void AddAvx2Supers<true>(KernelTable& table) noexcept;
template <>
void AddAvx2Tiles<false>(KernelTable& table) noexcept;
template <>
void AddAvx2Tiles<true>(KernelTable& table) noexcept;
template <>
void AddAvx2TilesBytes<false>(KernelTable& table) noexcept;
template <>
void AddAvx2TilesBytes<true>(KernelTable& table) noexcept;
template <>
void AddAvx2TilesSuper<false>(KernelTable& table) noexcept;
template <>
void AddAvx2TilesSuper<true>(KernelTable& table) noexcept;
template <>
void AddAvx2AttendInt8<false>(KernelTable& table) noexcept;
template <>
void AddAvx2AttendInt8<true>(KernelTable& table) noexcept;
template <>
void AddAvx512Matmuls<false>(KernelTable& table) noexcept;
template <>
void AddAvx512Matmuls<true>(KernelTable& table) noexcept;
template <>
void AddAvx512Supers<false>(KernelTable& table) noexcept;
template <>
void AddAvx512Supers<true>(KernelTable& table) noexcept;

}  // namespace hearth
