// SPDX-License-Identifier: Apache-2.0
// From a weight as the file has it to the panels that kernels read. No weight changes its value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "tensor/tensor.h"
namespace hearth {

// How a matrix of this format and width is packed: kRaw when its format has no kernel, or when the
// width is no multiple of the format's unit.
PackKind PackKindOf(const MatView& matrix);
int64_t PanelBytesOf(const MatView& matrix);  // from one panel of 16 rows to the next
int64_t PackedBytes(const MatView& matrix);   // room `dst` needs, a multiple of 64

// Packs panels [panel_begin, panel_end) to their places behind `dst`, which is 64-byte aligned and
// stands for the whole matrix. MXFP4 blocks that cannot be folded are appended to `spills`, by row
// and block. False when a value may be a NaN or an infinity: the caller must then ask CheckBlocks,
// which knows for sure and says where.
bool PackPanels(const MatView& matrix, int panel_begin, int panel_end, uint8_t* dst,
                std::vector<SpilledBlock>& spills);

// One panel of MXFP4 or Q8_0, a code at a time: the definition of their layouts, which packs the
// last panel when it is not full, and the oracle of the fast way.
void PackPanelPlainly(const MatView& matrix, int first_row, int count, uint8_t* panel,
                      std::vector<SpilledBlock>& spills);
SpilledBlock SpillOf(const MatView& matrix, int row, int block);

// Whether packed bytes from outside are what packing can give: shifts that index, scales that are
// numbers.
bool CheckPanels(const PackedMatrix& packed, int panel_begin, int panel_end);

// One row of a packed matrix back to floats: the embedding's look-up, and the tests' oracle.
void UnpackRow(const PackedMatrix& packed, int row, float* out);

}  // namespace hearth
