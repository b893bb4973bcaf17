// SPDX-License-Identifier: Apache-2.0
// The parts of a table that have a file of their own, one function per file. An Add... function
// puts its products into the table.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

void AddScalarFloats(KernelTable& table) noexcept;
void AddAvx512Floats(KernelTable& table) noexcept;
void AddAvx2Floats(KernelTable& table) noexcept;
// Supers: K-quants and IQ4_XS. Blocks: Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL.
void AddScalarSupers(KernelTable& table) noexcept;
void AddScalarBlocks(KernelTable& table) noexcept;
void AddAmxSupers(KernelTable& table) noexcept;
void AddAvx512Supers(KernelTable& table) noexcept;
void AddAvx512Blocks(KernelTable& table) noexcept;
void AddAvx2Supers(KernelTable& table) noexcept;
void AddAvx2Blocks(KernelTable& table) noexcept;
void AddAvx512Matmuls(KernelTable& table) noexcept;
void AddAvx512Attend(KernelTable& table) noexcept;
void AddAvx2Matmuls(KernelTable& table) noexcept;
void AddAvx2Attend(KernelTable& table) noexcept;

}  // namespace hearth
