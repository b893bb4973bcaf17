// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_choice.h"

#include "cpu/kernels_parts.h"

namespace hearth {

// Tables that take another level's and replace what has an instruction more.

const KernelTable& AvxVnniKernels() {
  static const KernelTable kTable = [] {
    KernelTable table = Avx2Kernels();
    table.isa = "avxvnni";
    AddAvx2Matmuls<true>(table);
    AddAvx2Supers<true>(table);
    AddAvx2Blocks<true>(table);
    AddAvx2AttendInt8<true>(table);
    AddAvx2Tiles<true>(table);
    AddAvx2TilesBytes<true>(table);
    AddAvx2TilesSuper<true>(table);
    return table;
  }();
  return kTable;
}

// VBMI looks codes up in one step where the table is that of MXFP4 or IQ4_XS.
const KernelTable& Avx512Kernels() {
  static const KernelTable kTable = [] {
    KernelTable table = Avx512VnniKernels();
    table.isa = "avx512";
    AddAvx512Matmuls<true>(table);
    AddAvx512Supers<true>(table);
    return table;
  }();
  return kTable;
}

const KernelTable& KernelsOf(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      break;
    case Isa::kAvx2:
      return Avx2Kernels();
    case Isa::kAvxVnni:
      return AvxVnniKernels();
    case Isa::kAvx512Vnni:
      return Avx512VnniKernels();
    case Isa::kAvx512:
      return Avx512Kernels();
    case Isa::kAmx:
      return AmxKernels();
  }
  return ScalarKernels();
}

}  // namespace hearth
