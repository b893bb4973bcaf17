// SPDX-License-Identifier: Apache-2.0
#include "cpu/pack.h"

#include <algorithm>

#include "cpu/pack_format.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

PackKind KindOf(DType dtype) {
  switch (dtype) {
    case DType::kMxfp4:
    case DType::kMxfp4Planes:
      return PackKind::kMxfp4;
    case DType::kQ8_0:
      return PackKind::kQ8;
    case DType::kQ4_0:
      return PackKind::kQ4_0;
    case DType::kQ4_1:
      return PackKind::kQ4_1;
    case DType::kQ5_0:
      return PackKind::kQ5_0;
    case DType::kQ5_1:
      return PackKind::kQ5_1;
    case DType::kIq4Nl:
      return PackKind::kIq4Nl;
    case DType::kQ2_K:
      return PackKind::kQ2K;
    case DType::kQ3_K:
      return PackKind::kQ3K;
    case DType::kQ4_K:
      return PackKind::kQ4K;
    case DType::kQ5_K:
      return PackKind::kQ5K;
    case DType::kQ6_K:
      return PackKind::kQ6K;
    case DType::kIq4Xs:
      return PackKind::kIq4Xs;
    case DType::kF32:
      return PackKind::kF32;
    case DType::kF16:
      return PackKind::kF16;
    case DType::kBf16:
      return PackKind::kBf16;
    default:
      return AddedKindOf(dtype);
  }
}

}  // namespace

PackKind PackKindOf(const MatView& matrix) {
  const PackKind kind = KindOf(matrix.dtype);
  const PackFormat* format = FormatOf(kind);
  return format != nullptr && matrix.cols % format->unit == 0 ? kind : PackKind::kRaw;
}

int64_t PanelBytesOf(const MatView& matrix) {
  return FormatOf(PackKindOf(matrix))->panel_bytes(matrix.dtype, matrix.cols);
}

int64_t PackedBytes(const MatView& matrix) { return NumPanels(matrix.rows) * PanelBytesOf(matrix); }

bool PackPanels(const MatView& matrix, int panel_begin, int panel_end, uint8_t* dst,
                std::vector<SpilledBlock>& spills) {
  const PackFormat& format = *FormatOf(PackKindOf(matrix));
  const int64_t panel_bytes = PanelBytesOf(matrix);
  bool plausible = true;
  for (int p = panel_begin; p < panel_end; ++p) {
    const int first_row = p * kPanelRows, count = std::min(kPanelRows, matrix.rows - first_row);
    plausible &= format.pack(matrix, first_row, count, dst + p * panel_bytes, spills);
  }
  return plausible;
}

bool CheckPanels(const PackedMatrix& packed, int panel_begin, int panel_end) {
  const PackFormat& format = *FormatOf(packed.kind);
  bool sound = true;
  for (int p = panel_begin; p < panel_end; ++p) {
    sound &= format.check(packed, packed.data + p * packed.panel_bytes);
  }
  return sound;
}

void UnpackRow(const PackedMatrix& packed, int row, float* out) {
  FormatOf(packed.kind)->unpack_row(packed, row, out);
}

}  // namespace hearth
