// SPDX-License-Identifier: Apache-2.0
// The step every command that computes fast starts with: a model becomes a CPU backend.
#pragma once
#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "cpu/cpu_backend.h"
#include "model/model.h"
namespace hearth {

// The flags that every command with a CPU backend has.
struct CpuFlags {
  std::string isa;      // empty: the best this machine has
  int num_threads = 0;  // 0: one per core that the cgroup pays for
};

// Fills in what the flags leave open: the instruction set, the threads, progress on a terminal.
// kInvalid for an instruction set that does not exist.
Status FillFrom(const CpuFlags& flags, CpuOptions& options);

// The plan in a line, and kExhausted with that line when it needs more than `room` bytes.
uint64_t UsableMemoryBytes();  // of the machine and the cgroup, whichever is less
std::string Told(const CpuMemoryPlan& plan, uint64_t room);
Status CheckFits(const CpuMemoryPlan& plan, uint64_t room);

// Tells on stderr what it will hold, then packs the weights; kExhausted, with the same numbers,
// when that is more than the machine or the cgroup has.
Result<std::unique_ptr<Backend>> OpenCpuBackend(const Model& model, const CpuOptions& options);

}  // namespace hearth
