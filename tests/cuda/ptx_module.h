// SPDX-License-Identifier: Apache-2.0
// PTX text as nvcc writes it, read into instructions that can be run.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptx_alu.h"
namespace hearth::cuda {

struct PtxOperand {
  enum class Kind { kRegister, kNumber, kThread, kBlock };
  Kind kind = Kind::kNumber;
  int index = 0;        // of the register; of the dimension for kThread and kBlock
  uint64_t number = 0;  // also what an address adds to its register
};

enum class PtxKind {
  kAlu,
  kPack,    // two halves, of `bytes` each, to one register
  kUnpack,  // and back; what "_" takes is lost
  kLoad,
  kStore,
  kAtomicAdd,  // of 32 bits in shared memory
  kArrive,     // the same in global memory
  kBarrier,
  kShuffle,  // bfly
  kMma16832,
  kMma8816,
  kMmaHalf,  // 16 x 8 x 16, or x 8
  kCopyAsync,
  kCopyCommit,
  kCopyWait,
  kBranch,
  kReturn,
};
enum class PtxSpace { kGeneric, kGlobal, kShared, kParam };

struct PtxInstruction {
  PtxKind kind = PtxKind::kAlu;
  AluOp alu;
  int guard = -1;  // the register of its predicate
  bool is_guard_negated = false;
  std::vector<int> to;           // registers
  std::vector<PtxOperand> from;  // for a store or copy: the address first
  PtxSpace space = PtxSpace::kGeneric;
  int bytes = 0;           // of one element of a load or store, of a half of a pair
  bool is_stream = false;  // a load that leaves nothing in L1
  bool extends = false;    // a load of a signed number
  bool orders = false;     // an arrival that releases and acquires at the device
  int target = -1;         // of a branch
  std::string opcode, text;
};

struct PtxKernel {
  std::string name;
  size_t param_bytes = 0;
  int num_registers = 0;
  std::vector<PtxInstruction> code;
};

// Ends the process for text that it does not understand: nothing is skipped.
class PtxModule {
 public:
  explicit PtxModule(const std::string& text);
  const PtxKernel& kernel(const std::string& name) const;
  const std::map<std::string, PtxKernel>& kernels() const { return kernels_; }

 private:
  std::map<std::string, PtxKernel> kernels_;
};

}  // namespace hearth::cuda
