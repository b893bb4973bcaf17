// SPDX-License-Identifier: Apache-2.0
// The PTX that nvcc wrote, through the interpreter, against the scalar CPU kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "proof/checks.h"
#include "ptx_run.h"

namespace hearth::cuda {
namespace {

CaseGrid ChosenGrid() {
  return std::getenv("HEARTH_CUDA_FULL") != nullptr ? CaseGrid::kFull : CaseGrid::kTiny;
}

// What cmake/cuda.cmake left for an architecture; empty when there was no nvcc.
std::string PtxOf(const std::string& arch) {
  std::ifstream file(std::string(HEARTH_PTX_DIR) + "/sm_" + arch + ".ptx");
  return {std::istreambuf_iterator<char>(file), {}};
}

class CudaPtx : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaPtx, HasTheBitsOfTheScalarKernels) {
  const std::string text = PtxOf(GetParam());
  if (text.empty()) GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
  PtxMachine machine(GetParam(), text);
  for (const Check& check : kChecks) EXPECT_EQ(check.run(machine, ChosenGrid()), "") << check.name;
  for (const auto& [kernel, c] : machine.counters()) {
    std::printf(
        "  sm_%s %-18s %10lld instructions, loads %3.0f %%, stores %3.0f %% of sectors used, "
        "%.2f wavefronts per ideal\n",
        GetParam(), kernel.c_str(), static_cast<long long>(c.instructions),
        100.0 * static_cast<double>(c.load_bytes) / (32.0 * static_cast<double>(c.load_sectors)),
        100.0 * static_cast<double>(c.store_bytes) / (32.0 * static_cast<double>(c.store_sectors)),
        c.ideal_wavefronts == 0
            ? 1.0
            : static_cast<double>(c.wavefronts) / static_cast<double>(c.ideal_wavefronts));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaPtx,
                         ::testing::Values("75", "80", "86", "89", "90", "100", "120"));

}  // namespace
}  // namespace hearth::cuda
