// SPDX-License-Identifier: Apache-2.0
// The one place where an instruction set becomes a kernel table.
#pragma once
#include "cpu/kernels.h"
#include "platform/isa.h"
namespace hearth {

// `isa` must be one of SupportedIsas(), or the first call of a kernel is an illegal instruction.
const KernelTable& KernelsOf(Isa isa);

}  // namespace hearth
