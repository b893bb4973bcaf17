// SPDX-License-Identifier: Apache-2.0
// What Hearth knows about each packed format, one row per format. A new format is a PackKind, a row
// here, a file that packs it and its kernels; nothing else asks which format a matrix has. Or it is
// added from outside.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "tensor/tensor.h"
namespace hearth {

struct PackFormat {
  const char* name;
  int unit;   // columns come in multiples of it
  int strip;  // columns that share an activation scale, or 0: the kernel reads floats
  // From one panel of 16 rows to the next, a multiple of 64.
  int64_t (*panel_bytes)(DType dtype, int cols);
  // Packs `count` rows, at most 16, into one panel; rows that are not there become zero weights.
  // False when a value may be a NaN or an infinity: the caller must then ask CheckBlocks, which
  // knows for sure and says where.
  bool (*pack)(const MatView& matrix, int first_row, int count, uint8_t* panel,
               std::vector<SpilledBlock>& spills);
  // Whether a panel from outside is what packing can give.
  bool (*check)(const PackedMatrix& packed, const uint8_t* panel);
  // One row back to the floats that tensor/quant.h decodes.
  void (*unpack_row)(const PackedMatrix& packed, int row, float* out);
  // Only for a format that was added: its kernel, whatever the instruction set. Built-in formats
  // have one in each KernelTable.
  MatmulKernel matmul = nullptr;
};

// Null for formats that are not packed: their matrices stay kRaw.
const PackFormat* FormatOf(PackKind kind);

// A format that src/ does not know: matrices of `dtype`, which AddBlockFormat gave, are packed as
// `format` says and multiplied by its kernel from now on. The kernel must keep the promise of
// docs/numerics.md: the bits of a row must not depend on the other rows of its batch. `format` must
// outlive the process's use of it. Thread: one, before any backend is made.
PackKind AddPackFormat(DType dtype, const PackFormat& format);
// kRaw where nothing was added for the format.
PackKind AddedKindOf(DType dtype);
// For these activations, which say by their planes of which numerics. Null when rows are decoded
// one by one.
MatmulKernel KernelOf(const KernelTable& table, PackKind kind, const Activations& x);

// The rows, each family in a file of its own.
extern const PackFormat kMxfp4Format, kQ8Format, kF32Format, kF16Format, kBf16Format, kRawFormat;
extern const PackFormat kQ4_0Format, kQ4_1Format, kQ5_0Format, kQ5_1Format, kIq4NlFormat;
extern const PackFormat kQ2KFormat, kQ3KFormat, kQ4KFormat, kQ5KFormat, kQ6KFormat, kIq4XsFormat;

}  // namespace hearth
