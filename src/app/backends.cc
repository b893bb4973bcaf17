// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"

#include "cpu/cpu_backend.h"
#include "gpu/cuda_backend.h"

namespace hearth {

const BackendFactory& BackendOn(std::string_view device) {
  return IsHost(device) ? CpuBackends() : CudaBackends();
}

}  // namespace hearth
