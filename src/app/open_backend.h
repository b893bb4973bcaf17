// SPDX-License-Identifier: Apache-2.0
// The step every command that computes fast starts with: a model becomes a backend.
#pragma once
#include <memory>
#include <string>

#include "backend/backend_factory.h"
#include "base/result.h"
#include "model/model.h"
namespace hearth {

// Whether experts may come from disk, and how.
struct PagingFlags {
  bool is_allowed = false;
  int64_t expert_bytes = 0;  // memory for them; 0: what is left
  std::shared_ptr<PagingMeter> meter = std::make_shared<PagingMeter>();
};

// The flags that every command with a backend has.
struct BackendFlags {
  std::string device = "auto";
  std::string isa;      // empty: the best this machine has
  int num_threads = 0;  // 0: one per core that the cgroup pays for
  KvCode kv_code = KvCode::kInt16;
  Numerics numerics = Numerics::kExact;
  int numa_nodes = 0;        // as in platform/worker_plan.h
  int64_t beside_bytes = 0;  // no flag of its own: what the process takes besides
  PagingFlags paging;
  std::string weights;  // what 16-bit and 32-bit weights are quantized to while loading, or empty
};

// What replies' bits depend on beside the model, by name: in fingerprints and metrics.
std::string NumericsNameOf(const BackendFlags& flags);

// With progress on a terminal and every choice made; kInvalid for what does not exist.
Result<BackendOptions> OptionsFrom(const BackendFlags& flags);
Result<BackendPlan> PlanBackend(const Model& model, const BackendOptions& options);

// The plan in a line, and kExhausted with that line when it needs more than `room` bytes.
uint64_t UsableMemoryBytes();  // what the machine and the tightest limit of it leave
Result<uint64_t> UsableBytesOn(const BackendOptions& options);  // the same of a device
constexpr double InGib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }
std::string Told(const BackendPlan& plan, uint64_t room);
Status CheckFits(const BackendPlan& plan, uint64_t room);

// Tells on stderr what it will hold, then arranges the weights; kExhausted, with the same numbers,
// when that is more than the machine or the cgroup has.
Result<std::unique_ptr<Backend>> OpenBackend(const Model& model, const BackendPlan& plan);

}  // namespace hearth
