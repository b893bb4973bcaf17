// SPDX-License-Identifier: Apache-2.0
// The machines that run kernels without a GPU: the source emulator in three schedules, and the PTX
// interpreter (ptx_run.h).
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "proof/machine.h"
namespace hearth::cuda {

enum class Schedule { kForward, kReverse, kRandom };
std::unique_ptr<Machine> SourceEmulator(Schedule schedule);
// Of what a kernel is launched with; 0: there is no kernel of that name.
size_t ArgsBytes(const std::string& kernel);

// Ends the process.
[[noreturn]] void Refuse(const char* machine, const std::string& why);

}  // namespace hearth::cuda
