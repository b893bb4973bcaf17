// SPDX-License-Identifier: Apache-2.0
// Products of many tokens by tiles on AVX2, and again with VNNI: MXFP4, Q8 and the formats with a
// factor per block.
#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_blocks.h"

namespace hearth {
namespace {

#include "cpu/avx2_tile.inl"
#include "cpu/canon.inl"
#include "cpu/tile.inl"
#include "cpu/tile_block_codes.inl"
#include "cpu/tile_blocks.inl"

}  // namespace

template <>
void AddAvx2Tiles<kVnni>(KernelTable& table) noexcept {
  // From how many tokens on tiles are ahead of the kernels for few (tiles_bench); with VNNI as
  // measured in the coding of AVX-512, not on a processor that has AVX-VNNI.
  const auto add = [&](PackKind kind, MatmulKernel product, int fewest) {
    table.tiles[static_cast<int>(kind)] = {product, fewest};
  };
  add(PackKind::kMxfp4, MatmulMxfp4, kVnni ? 8 : 6);
  add(PackKind::kQ8, MatmulBlocks<PackKind::kQ8>, kVnni ? 12 : 4);
  BlockKinds::ForEach([&]<PackKind kKind>() { add(kKind, MatmulBlocks<kKind>, kVnni ? 12 : 4); });
}

}  // namespace hearth
