// SPDX-License-Identifier: Apache-2.0
#include "cpu/pack_format.h"

#include <array>
#include <cstddef>

#include "base/check.h"
#include "tensor/block_format.h"

namespace hearth {
namespace {

struct AddedRow {
  DType dtype;
  const PackFormat* format;
};
struct Added {
  std::array<AddedRow, kMaxAddedFormats> formats{};
  int count = 0;
};
Added& All() {
  static Added added;
  return added;
}

}  // namespace

const PackFormat* FormatOf(PackKind kind) {
  static const PackFormat* const kFormats[kNumPackKinds] = {
      &kMxfp4Format, &kQ8Format,  &kQ4_0Format, &kQ4_1Format, &kQ5_0Format, &kQ5_1Format,
      &kIq4NlFormat, &kQ2KFormat, &kQ3KFormat,  &kQ4KFormat,  &kQ5KFormat,  &kQ6KFormat,
      &kIq4XsFormat, &kF32Format, &kF16Format,  &kBf16Format, &kRawFormat,
  };
  const auto index = static_cast<size_t>(kind);
  return index < kNumPackKinds ? kFormats[index] : All().formats[index - kNumPackKinds].format;
}

PackKind AddPackFormat(DType dtype, const PackFormat& format) {
  Added& all = All();
  HEARTH_CHECK(all.count < kMaxAddedFormats && AddedFormat(dtype) != nullptr);
  HEARTH_CHECK(AddedKindOf(dtype) == PackKind::kRaw && format.matmul != nullptr);
  all.formats[static_cast<size_t>(all.count)] = {dtype, &format};
  return static_cast<PackKind>(kNumPackKinds + all.count++);
}

PackKind AddedKindOf(DType dtype) {
  const Added& all = All();
  for (int i = 0; i < all.count; ++i) {
    if (all.formats[static_cast<size_t>(i)].dtype == dtype) {
      return static_cast<PackKind>(kNumPackKinds + i);
    }
  }
  return PackKind::kRaw;
}

MatmulKernel KernelOf(const KernelTable& table, PackKind kind, const Activations& x) {
  const auto index = static_cast<size_t>(kind);
  if (index >= kNumPackKinds) return FormatOf(kind)->matmul;
  const bool is_fast = x.planes == 1;
  const TileProduct& tiles = is_fast ? table.fast.tiles[index] : table.tiles[index];
  if (tiles.kernel != nullptr && x.m >= tiles.fewest) return tiles.kernel;
  return is_fast ? table.fast.matmul[index] : table.matmul[index];
}

}  // namespace hearth
