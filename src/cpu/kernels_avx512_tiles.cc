// SPDX-License-Identifier: Apache-2.0
// Products of many tokens by tiles on VNNI: MXFP4, Q8 and the formats with a factor per block.
#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_blocks.h"

namespace hearth {
namespace {

#include "cpu/avx512_tile.inl"
#include "cpu/canon.inl"
#include "cpu/tile.inl"
#include "cpu/tile_block_codes.inl"
#include "cpu/tile_blocks.inl"

}  // namespace

void AddAvx512Tiles(KernelTable& table) noexcept {
  // From how many tokens on tiles are ahead of the kernels for few (tiles_bench): those run eight
  // tokens at a time, and the simpler a code is to take apart, the less it costs them to repeat it.
  const auto add = [&](PackKind kind, MatmulKernel product, int fewest) {
    table.tiles[static_cast<int>(kind)] = {product, fewest};
  };
  add(PackKind::kMxfp4, MatmulMxfp4, 9);
  add(PackKind::kQ8, MatmulBlocks<PackKind::kQ8>, 17);
  add(PackKind::kQ4_0, MatmulBlocks<PackKind::kQ4_0>, 28);
  add(PackKind::kQ4_1, MatmulBlocks<PackKind::kQ4_1>, 28);
  add(PackKind::kQ5_0, MatmulBlocks<PackKind::kQ5_0>, 9);
  add(PackKind::kQ5_1, MatmulBlocks<PackKind::kQ5_1>, 9);
  add(PackKind::kIq4Nl, MatmulBlocks<PackKind::kIq4Nl>, 17);
}

}  // namespace hearth
