// SPDX-License-Identifier: Apache-2.0
// The parts of a table that have a file of their own, one function per file. An Add... function
// puts its products into the table.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

using AttendKernel = void (*)(const AttendArgs& args, int kv_begin, int kv_end);

void AddScalarFloats(KernelTable& table) noexcept;
void AddAvx512Floats(KernelTable& table) noexcept;
void AddAvx2Floats(KernelTable& table) noexcept;
void AddScalarSupers(KernelTable& table) noexcept;
void AddAmxSupers(KernelTable& table) noexcept;
void AddAvx512Supers(KernelTable& table) noexcept;
void AddAvx2Supers(KernelTable& table) noexcept;
void AddAvx512Matmuls(KernelTable& table) noexcept;
AttendKernel Avx512Attend();
void AddAvx2Matmuls(KernelTable& table) noexcept;
AttendKernel Avx2Attend();

}  // namespace hearth
