// SPDX-License-Identifier: Apache-2.0
// The parts of a table that have a file of their own, one function per file. An Add... function
// puts its products into the table.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

using AttendKernel = void (*)(const AttendArgs& args, int kv_begin, int kv_end);

void AddScalarSupers(KernelTable& table);
void AddAmxSupers(KernelTable& table);
void AddAvx512Supers(KernelTable& table);
void AddAvx512Matmuls(KernelTable& table);
AttendKernel Avx512Attend();
void AddAvx2Matmuls(KernelTable& table);
AttendKernel Avx2Attend();

}  // namespace hearth
