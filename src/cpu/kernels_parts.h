// SPDX-License-Identifier: Apache-2.0
// The parts of a table that have a file of their own, one function per file.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

struct MatmulKernels {
  void (*mxfp4)(const MatmulArgs& args, int panel_begin, int panel_end);
  void (*q8)(const MatmulArgs& args, int panel_begin, int panel_end);
};
struct AttendKernels {
  void (*attend)(const AttendArgs& args, int kv_begin, int kv_end);
  void (*merge_spans)(const AttendArgs& args, int kv_begin, int kv_end);
};

MatmulKernels Avx512Matmuls();
AttendKernels Avx512Attend();
MatmulKernels Avx2Matmuls();
AttendKernels Avx2Attend();

}  // namespace hearth
