// SPDX-License-Identifier: Apache-2.0
// The backend on an NVIDIA GPU: the CPU's bits, computed by the kernels of cuda/ behind the one
// door.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "backend/backend_factory.h"
namespace hearth {

// With the kernels that this program was built with. Its devices are called "cuda:0", "cuda:1" ...
const BackendFactory& CudaBackends();

// With other kernels, for tests.
std::unique_ptr<BackendFactory> CudaBackendsWith(std::span<const std::byte> image);

}  // namespace hearth
