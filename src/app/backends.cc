// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"

#include "cpu/cpu_backend.h"

namespace hearth {

std::span<const BackendFactory* const> Backends() {
  static const BackendFactory* const kAll[] = {
      &CpuBackends(),
  };
  return kAll;
}

}  // namespace hearth
