// SPDX-License-Identifier: Apache-2.0
// What a model would take of a GPU's memory, and how long a context is left room for.
#pragma once
#include <cstdint>

#include "backend/backend_factory.h"
#include "gpu/device.h"
namespace hearth::cuda {

struct GpuFit {
  int64_t weight_bytes = 0;
  int64_t step_bytes = 0;      // activations and logits
  int64_t context_tokens = 0;  // that fit beside them, at most the model's; 0: it does not fit
};

// kUnsupported, with the reason, for a model that this device cannot run. No kernels are needed.
Result<GpuFit> FitOf(const Model& model, const DeviceFacts& facts, uint64_t usable_bytes,
                     const BackendOptions& options);

// What of the free memory Hearth may take: the driver takes some for itself as it goes.
uint64_t UsableOf(uint64_t free_bytes);

}  // namespace hearth::cuda
