// SPDX-License-Identifier: Apache-2.0
// Runs PTX: warps in lock step, lanes that parted meet again at the lowest instruction, every
// address checked. It is stricter than a GPU: a word of shared memory that two threads touch
// between the same two barriers, one of them writing, is a race, whatever the schedule.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "machine.h"
#include "ptx_module.h"
namespace hearth::cuda {

// What a launch did, for judging a kernel's speed by construction.
struct PtxCounters {
  int64_t instructions = 0;  // of warps
  int64_t mma = 0, barriers = 0;
  int64_t load_bytes = 0, load_sectors = 0;      // global: bytes asked for, sectors of 32 touched
  int64_t stream_bytes = 0, stream_sectors = 0;  // of those, weights read once (LoadOnce)
  int64_t store_bytes = 0, store_sectors = 0;
  // Shared: passes that the banks need, and those that as many bytes would need without conflicts.
  int64_t wavefronts = 0, ideal_wavefronts = 0;

  void Add(const PtxCounters& other);
};

class PtxMachine : public Machine {
 public:
  // `name` is for people; `text` is what nvcc wrote.
  PtxMachine(std::string name, const std::string& text);
  std::string name() const override { return name_; }
  void Run(const std::string& kernel, const Launch& launch, const void* args, size_t size,
           const DeviceMemory& memory) override;
  // By kernel, since it was made.
  const std::map<std::string, PtxCounters>& counters() const { return counters_; }
  const PtxModule& module() const { return module_; }

 private:
  const std::string name_;
  const PtxModule module_;
  std::map<std::string, PtxCounters> counters_;
};

}  // namespace hearth::cuda
