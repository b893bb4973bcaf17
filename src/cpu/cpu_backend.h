// SPDX-License-Identifier: Apache-2.0
// The x86 backend: packed weights, KV memory and a thread pool behind the one door.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/backend_factory.h"
#include "backend/step_phases.h"
#include "model/model.h"
#include "platform/isa.h"
#include "platform/worker_plan.h"
namespace hearth {

// The door for programs. What follows it is for this room and for tests of its kernels.
const BackendFactory& CpuBackends();

struct CpuOptions {
  Isa isa = Isa::kScalar;  // one of SupportedIsas()
  int num_threads = 1;
  int numa_nodes = kNumaOff;   // as in worker_plan.h
  std::vector<int> kv_blocks;  // of each group of CpuKvLayout; one number is for every group
  KvCode kv_code = KvCode::kInt16;
  Numerics numerics = Numerics::kExact;
  bool reserves_kv = false;    // takes the memory of all blocks at once
  int max_step_tokens = 2048;  // bounds the memory of a step
  int max_rows = 64;           // of results for which memory is reserved
  int64_t expert_bytes = 0;    // as in BackendOptions, like the next
  std::shared_ptr<PagingMeter> paging;
  std::function<void(int64_t done, int64_t total)> on_progress;  // while weights are packed
  PhaseTotals* phases = nullptr;  // profiles steps into this, which outlives the backend
};

// Address space for the activations of the largest step.
int64_t CpuStepBytes(const Model& model, const CpuOptions& options);

// How this backend cuts the K and V of a model into blocks; the numbers of blocks are 0.
KvLayout CpuKvLayout(const ModelSpec& spec, KvCode code = KvCode::kInt16);

// Copies the weights and gives the file's memory back on the way; packed weights are checked and
// used where they are. Nothing of `model` is needed afterwards. kUnsupported for shapes no kernel
// handles, kInvalid for an ISA this machine lacks, kCorrupt for weights that are no numbers,
// kExhausted when memory runs out.
Result<std::unique_ptr<Backend>> MakeCpuBackend(const Model& model, const CpuOptions& options);

}  // namespace hearth
