// SPDX-License-Identifier: Apache-2.0
#include "cuda/fatbin.h"

#ifdef HEARTH_CUDA_FATBIN
// 16 bytes: the driver reads words of 8.
asm(".section .rodata\n"
    ".balign 16\n"
    ".globl hearth_cuda_fatbin_begin\n"
    "hearth_cuda_fatbin_begin:\n"
    ".incbin \"" HEARTH_CUDA_FATBIN
    "\"\n"
    ".globl hearth_cuda_fatbin_end\n"
    "hearth_cuda_fatbin_end:\n"
    ".previous\n");
extern "C" {
extern const std::byte hearth_cuda_fatbin_begin[];
extern const std::byte hearth_cuda_fatbin_end[];
}
#endif

namespace hearth::cuda {

std::span<const std::byte> Fatbin() {
#ifdef HEARTH_CUDA_FATBIN
  return {hearth_cuda_fatbin_begin, hearth_cuda_fatbin_end};
#else
  return {};
#endif
}

std::string_view AboutKernels() {
  if (Fatbin().empty()) return "CUDA: not built in";
  return "CUDA: kernels built in (--device cuda:0), verified by emulation, not yet on hardware";
}

}  // namespace hearth::cuda
