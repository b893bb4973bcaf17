// SPDX-License-Identifier: Apache-2.0
// AMX: tiles for many tokens, the AVX-512 table for few and for everything that is no product.
#include "cpu/kernels_amx.h"

#include "cpu/kernels.h"
#include "cpu/kernels_parts.h"

namespace hearth {
namespace {

// Where they cross, with weights that come from memory (products_bench). MXFP4: the tiles of few
// tokens are at the speed of memory, as AVX-512 is with one or two, also while a neighbour slows
// the tiles down; more than eight tokens need both halves in tiles of their own. Q8: a tile stores
// its sums every block.
constexpr int kFewestMxfp4 = 3;
constexpr int kFewestQ8 = 9;
constexpr int kFewestBlocks = 13;

MatmulKernel Few(PackKind kind) { return Avx512Kernels().matmul[static_cast<int>(kind)]; }

void MatmulMxfp4(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  if (m < kFewestMxfp4) return Few(PackKind::kMxfp4)(args, panel_begin, panel_end);
  if (m <= kMostFewTokens) return AmxMatmulMxfp4Few(args, panel_begin, panel_end);
  AmxMatmulMxfp4(args, panel_begin, panel_end);
}

void MatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  if (args.x->m < kFewestQ8) return Few(PackKind::kQ8)(args, panel_begin, panel_end);
  AmxMatmulQ8(args, panel_begin, panel_end);
}

void MatmulBlocks(const MatmulArgs& args, int panel_begin, int panel_end) {
  if (args.x->m < kFewestBlocks) return Few(args.w->kind)(args, panel_begin, panel_end);
  AmxMatmulBlocks(args, panel_begin, panel_end);
}

KernelTable MakeTable() {
  KernelTable table = Avx512Kernels();
  table.isa = "amx";
  table.matmul[static_cast<int>(PackKind::kMxfp4)] = MatmulMxfp4;
  table.matmul[static_cast<int>(PackKind::kQ8)] = MatmulQ8;
  AddAmxSupers(table);
  BlockKinds::ForEach(
      [&]<PackKind kKind>() { table.matmul[static_cast<int>(kKind)] = MatmulBlocks; });
  for (TileProduct& tiles : table.tiles) tiles = {};  // AMX has its own for many tokens
  const auto add = [&](PackKind kind, MatmulKernel product) {
    table.fast.tiles[static_cast<int>(kind)] = {product, kFewestOfOnePlane};
  };
  add(PackKind::kMxfp4, AmxMatmulMxfp4Fast);
  add(PackKind::kQ8, AmxMatmulQ8);
  BlockKinds::ForEach([&]<PackKind kKind>() { add(kKind, AmxMatmulBlocks); });
  return table;
}

}  // namespace

const KernelTable& AmxKernels() {
  static const KernelTable table = MakeTable();
  return table;
}

}  // namespace hearth
