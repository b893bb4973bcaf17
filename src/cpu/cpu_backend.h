// SPDX-License-Identifier: Apache-2.0
// The x86 backend: packed weights, KV memory and a thread pool behind the one door.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cpu/phases.h"
#include "model/model.h"
#include "platform/isa.h"
namespace hearth {

struct CpuOptions {
  Isa isa = Isa::kScalar;  // at most BestIsa()
  int num_threads = 1;
  std::vector<int> kv_blocks;  // of each group of CpuKvLayout; one number is for every group
  int max_step_tokens = 2048;  // bounds the memory of a step
  std::function<void(int64_t done, int64_t total)> on_progress;  // while weights are packed
  PhaseTotals* phases = nullptr;  // profiles steps into this, which outlives the backend
};

// How this backend cuts the K and V of a model into blocks; the numbers of blocks are 0.
KvLayout CpuKvLayout(const ModelSpec& spec);

// What a backend with these options will hold, before it is made.
struct CpuMemoryPlan {
  int64_t weight_bytes = 0, kv_bytes = 0;
  int64_t step_bytes = 0;  // activations of the largest step, about
  int64_t total() const { return weight_bytes + kv_bytes + step_bytes; }
};
CpuMemoryPlan PlanMemory(const Model& model, const CpuOptions& options);

// A sentence about weights in formats without a fast kernel, or "" when all have one.
std::string SlowFormatsNote(const Model& model);

// Copies the weights and gives the file's memory back on the way; packed weights are checked and
// used where they are. Nothing of `model` is needed afterwards. kUnsupported for shapes no kernel
// handles, kInvalid for an ISA this machine lacks, kCorrupt for weights that are no numbers,
// kExhausted when memory runs out.
Result<std::unique_ptr<Backend>> MakeCpuBackend(const Model& model, const CpuOptions& options);

}  // namespace hearth
