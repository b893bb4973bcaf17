// SPDX-License-Identifier: Apache-2.0
// Every CUDA kernel in the source emulator, in three schedules, against the scalar CPU kernels.
#include <gtest/gtest.h>

#include <cstdlib>

#include "checks.h"

namespace hearth::cuda {
namespace {

// CI plays the small grid, `slow.cuda` the full one.
Grid ChosenGrid() {
  return std::getenv("HEARTH_CUDA_FULL") != nullptr ? Grid::kFull : Grid::kSmall;
}

class CudaKernels : public ::testing::TestWithParam<Schedule> {};

TEST_P(CudaKernels, HaveTheBitsOfTheScalarOnes) {
  const std::unique_ptr<Machine> machine = SourceEmulator(GetParam());
  for (const Check& check : kChecks) {
    EXPECT_EQ(check.run(*machine, ChosenGrid()), "") << check.name;
  }
  std::printf("  %s: %lld values compared so far\n", machine->name().c_str(),
              static_cast<long long>(NumCompared()));
}

std::string ScheduleName(const ::testing::TestParamInfo<Schedule>& tested) {
  constexpr const char* kNames[] = {"forward", "reverse", "random"};
  return kNames[static_cast<int>(tested.param)];
}
INSTANTIATE_TEST_SUITE_P(All, CudaKernels,
                         ::testing::Values(Schedule::kForward, Schedule::kReverse,
                                           Schedule::kRandom),
                         ScheduleName);

}  // namespace
}  // namespace hearth::cuda
