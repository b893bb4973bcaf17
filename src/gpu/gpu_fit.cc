// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_fit.h"

#include <algorithm>

#include "cpu/cpu_backend.h"
#include "gpu/device_forward.h"
#include "gpu/device_model.h"
#include "gpu/step_buffers.h"

namespace hearth::cuda {
namespace {

// K and V of one sequence; a window holds what it sees and what a step adds.
int64_t KvBytesOf(const KvLayout& layout, int64_t tokens, int step_tokens) {
  int64_t bytes = 0;
  for (const KvGroupLayout& group : layout.groups) {
    const int64_t seen =
        group.window == 0 ? tokens : std::min<int64_t>(tokens, group.window + step_tokens);
    bytes += layout.BlocksUpTo(seen) * group.block_bytes;
  }
  return bytes;
}

}  // namespace

uint64_t UsableOf(uint64_t free_bytes) {
  return free_bytes - std::min<uint64_t>(free_bytes / 16, uint64_t{256} << 20);
}

Result<GpuFit> FitOf(const Model& model, const DeviceFacts& facts, uint64_t usable_bytes,
                     const BackendOptions& options) {
  HEARTH_TRY(CheckShapes(model, facts));
  GpuFit fit;
  fit.weight_bytes = DeviceModel::BytesFor(model);
  fit.step_bytes = StepBytesOf(model.spec, {options.max_step_tokens, std::max(1, options.max_rows),
                                            DeviceModel::ReadsSupersOf(model)});
  const int64_t room = static_cast<int64_t>(usable_bytes) - fit.weight_bytes - fit.step_bytes;
  const KvLayout layout = CpuKvLayout(model.spec);
  // The longest context whose K and V fit, by halving.
  int64_t fits = 0, most = model.spec.max_context;
  while (fits < most) {
    const int64_t middle = fits + (most - fits + 1) / 2;
    if (KvBytesOf(layout, middle, options.max_step_tokens) <= room) {
      fits = middle;
    } else {
      most = middle - 1;
    }
  }
  fit.context_tokens = fits;
  return fit;
}

}  // namespace hearth::cuda
