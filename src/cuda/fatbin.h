// SPDX-License-Identifier: Apache-2.0
// The compiled CUDA kernels inside this program.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
namespace hearth::cuda {

// What the driver loads; empty in a program that was built without nvcc.
std::span<const std::byte> Fatbin();

// For --version: whether this program has CUDA kernels, and what is known about them.
std::string_view AboutKernels();

}  // namespace hearth::cuda
