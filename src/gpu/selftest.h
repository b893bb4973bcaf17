// SPDX-License-Identifier: Apache-2.0
// Whether a GPU computes what the CPU does: every kernel on the device against the scalar kernels,
// bit for bit, with the checks of proof/ that the emulators pass.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "gpu/device.h"
#include "proof/checks.h"
namespace hearth::cuda {

struct SelfTestResult {
  std::string check;     // "attention"
  std::string wrong;     // the first difference, or empty
  int64_t num_compared;  // values
};

// An error when a check could not be made: no device, no memory, a launch that was refused. What
// differs is in the results, which are told one by one.
Status RunSelfTest(int index, std::span<const std::byte> image, CaseGrid grid,
                   const std::function<void(const SelfTestResult&)>& told);

}  // namespace hearth::cuda
