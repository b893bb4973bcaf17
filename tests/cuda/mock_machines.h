// SPDX-License-Identifier: Apache-2.0
// Which machine runs the kernels of a module that the mock driver is given.
#pragma once
#include <memory>

#include "machine.h"
namespace hearth::cuda {

// The image of a program that was built without nvcc and has no fatbin.
inline constexpr char kSourceImage[] = "HEARTH KERNELS FROM SOURCE";

// The source emulator; or, when HEARTH_MOCK_PTX names a file of what nvcc wrote, the PTX
// interpreter. (The fatbin holds the same text, compressed.) Null for an image that is neither a
// fatbin nor kSourceImage.
std::unique_ptr<Machine> MachineOf(const void* image);

}  // namespace hearth::cuda
