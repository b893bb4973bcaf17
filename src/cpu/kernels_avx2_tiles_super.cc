// SPDX-License-Identifier: Apache-2.0
// Products of many tokens by tiles on AVX2, and again with VNNI: K-quants and IQ4_XS.
#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <utility>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_super.h"

namespace hearth {
namespace {

#include "cpu/avx2_tile.inl"
#include "cpu/tile.inl"
#include "cpu/tile_super.inl"

}  // namespace

template <>
void AddAvx2TilesSuper<kVnni>(KernelTable& table) noexcept {
  SuperKinds::ForEach([&]<PackKind kKind>() {
    table.tiles[static_cast<int>(kKind)] = {MatmulSuper<kKind, 2>, kVnni ? 8 : 4};
    table.fast.tiles[static_cast<int>(kKind)] = {MatmulSuper<kKind, 1>, kVnni ? 8 : 4};
  });
}

}  // namespace hearth
