// SPDX-License-Identifier: Apache-2.0
// Products of numerics `fast` on VNNI: MXFP4, Q8 and the formats
// with a factor per block.
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
#include "cpu/tile_bytes.inl"
#include "cpu/tile_bytes_few.inl"

}  // namespace

void AddAvx512TilesBytes(KernelTable& table) noexcept {
  // From how many tokens on tiles are the faster ones (tiles_bench).
  const auto add = [&](PackKind kind, MatmulKernel few, MatmulKernel tiles) {
    table.fast.matmul[static_cast<int>(kind)] = few;
    table.fast.tiles[static_cast<int>(kind)] = {tiles, 5};
  };
  add(PackKind::kMxfp4, MatmulFewBytes<PackKind::kMxfp4>, MatmulBytes<PackKind::kMxfp4>);
  add(PackKind::kQ8, MatmulFewBytes<PackKind::kQ8>, MatmulBytes<PackKind::kQ8>);
  BlockKinds::ForEach(
      [&]<PackKind kKind>() { add(kKind, MatmulFewBytes<kKind>, MatmulBytes<kKind>); });
}

}  // namespace hearth
