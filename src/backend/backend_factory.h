// SPDX-License-Identifier: Apache-2.0
// How a backend is chosen and opened, without naming its types: a plan first, which costs nothing,
// then the memory.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/numerics.h"
#include "backend/paging_counts.h"
#include "backend/step_phases.h"
#include "model/model.h"
namespace hearth {

// What a caller asks for. What stays empty or 0 is chosen from the machine.
struct BackendOptions {
  std::string device;          // "cuda:0"; empty: the factory's only one
  std::string isa;             // an instruction set or a device's level, by name
  int num_threads = 0;         // 0: one per core that the cgroup pays for
  int numa_nodes = 0;          // memory nodes to place weights on; 0: all, 1: as if there were one
  int max_step_tokens = 2048;  // bounds the memory of a step
  int max_rows = 64;           // of results in a step, likewise
  Numerics numerics = Numerics::kExact;
  KvCode kv_code = KvCode::kInt16;
  int64_t expert_bytes = 0;  // memory for experts, which then come from disk; 0: all are in memory
  std::shared_ptr<PagingMeter> paging;  // told how they come and go
  // What the process needs besides, of the host's memory: not usable.
  int64_t beside_bytes = 0;
  bool reserves_kv = false;       // takes all memory for K and V when it opens, not when it is used
  PhaseTotals* phases = nullptr;  // told where the time of each step goes; outlives the backend
  std::function<void(int64_t done, int64_t total)> on_progress;  // while weights are arranged
};

// The same number of blocks in every group.
void SetBlocks(KvLayout& layout, int num_blocks);

// What a backend with these options will be and hold.
struct BackendPlan {
  BackendOptions options;  // with every choice made
  // How K and V are cut into blocks. The factory leaves the numbers of blocks 0: they are the
  // caller's to fill in before Open, from the memory that is left.
  KvLayout kv;
  int64_t weight_bytes = 0;
  // Of a model with experts that can come from disk: what the others of its weights take, and what
  // an expert does. 0: they cannot.
  int64_t resident_bytes = 0, frame_bytes = 0;
  int num_experts = 0, expert_layers = 0;
  int64_t step_bytes = 0;    // activations of the largest step
  int64_t result_bytes = 0;  // of max_rows
  std::string warning;       // a sentence for people, for example about slow formats; or empty
  int64_t total_bytes() const {
    return weight_bytes + kv.total_bytes() + step_bytes + result_bytes;
  }
};

// Thread: any.
class BackendFactory {
 public:
  virtual ~BackendFactory() = default;
  virtual std::string_view name() const = 0;  // for people: "cpu"
  // The options with every choice made; kInvalid for those that make no sense here.
  virtual Result<BackendOptions> Complete(const BackendOptions& options) const = 0;
  // What Complete refuses, and kUnsupported for a model that cannot run here.
  virtual Result<BackendPlan> Plan(const Model& model, const BackendOptions& options) const = 0;
  // Memory that a backend with these options may hold, where it will hold it.
  virtual Result<uint64_t> UsableBytes(const BackendOptions& options) const = 0;
  // Nothing of `model` is needed afterwards. kCorrupt for weights that are no numbers, kExhausted
  // when memory runs out.
  virtual Result<std::unique_ptr<Backend>> Open(const Model& model,
                                                const BackendPlan& plan) const = 0;
};

}  // namespace hearth
