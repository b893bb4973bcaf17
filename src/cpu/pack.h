// SPDX-License-Identifier: Apache-2.0
// From a weight as the file has it to the panels that kernels read. No weight changes its value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "tensor/tensor.h"
namespace hearth {

// How a matrix of this format and width is packed: MXFP4 and Q8_0 in panels, the rest as it is.
PackKind PackKindOf(const MatView& matrix);
int64_t PackedBytes(const MatView& matrix);  // room `dst` needs, a multiple of 64

// Packs rows [row_begin, row_end) (whole panels) of several matrices of equal width stacked on top
// of each other, so that q, k and v become one matrix. `dst` is 64-byte aligned. MXFP4 blocks that
// cannot be folded are appended to `spills`, in order.
void PackPanels(const MatView& matrix, int panel_begin, int panel_end, uint8_t* dst,
                std::vector<SpilledBlock>& spills);

// One row of a packed matrix back to floats: the embedding's look-up, and the tests' oracle.
void UnpackRow(const PackedMatrix& packed, int row, float* out);

}  // namespace hearth
