// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_choice.h"

namespace hearth {

const KernelTable& KernelsOf(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      break;
    case Isa::kAvx2:
      return Avx2Kernels();
    case Isa::kAvx512:
      return Avx512Kernels();
    case Isa::kAmx:
      return AmxKernels();
  }
  return ScalarKernels();
}

}  // namespace hearth
