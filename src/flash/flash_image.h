// SPDX-License-Identifier: Apache-2.0
// Which kernels the C API of flash attention runs: the library's own, or a test's.
#pragma once
#include <cstddef>
#include <span>
namespace hearth::cuda {

std::span<const std::byte> FlashImage();
// For tests on the mock driver, whose kernels need no nvcc. It outlives every call. Thread: before
// any other call.
void SetFlashImage(std::span<const std::byte> image);

}  // namespace hearth::cuda
