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
// From one panel to the next, or from one row to the next of what is not in panels.
int64_t PanelBytesOf(const MatView& matrix);
int64_t PackedBytes(const MatView& matrix);  // room `dst` needs, a multiple of 64

// Packs panels [panel_begin, panel_end) to their places behind `dst`, which is 64-byte aligned and
// stands for the whole matrix. MXFP4 blocks that cannot be folded are appended to `spills`, by row
// and block. False when a value may be a NaN or an infinity: the caller must then ask CheckBlocks,
// which knows for sure and says where.
bool PackPanels(const MatView& matrix, int panel_begin, int panel_end, uint8_t* dst,
                std::vector<SpilledBlock>& spills);

// The same for matrices in panels, a code at a time: the definition of the layout, which packs the
// last panel when it is not full, and the oracle of the fast way.
void PackPanelsPlainly(const MatView& matrix, int panel_begin, int panel_end, uint8_t* dst,
                       std::vector<SpilledBlock>& spills);
SpilledBlock SpillOf(const MatView& matrix, int row, int block);

// Whether packed bytes from outside are what packing can give: shifts that index, scales that are
// numbers. Panels, or rows / 16 of what is not in panels.
bool CheckPanels(const PackedMatrix& packed, int panel_begin, int panel_end);

// One row of a packed matrix back to floats: the embedding's look-up, and the tests' oracle.
void UnpackRow(const PackedMatrix& packed, int row, float* out);

}  // namespace hearth
