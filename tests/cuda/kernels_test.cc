// SPDX-License-Identifier: Apache-2.0
// Every CUDA kernel in the source emulator, in three schedules, against the scalar CPU kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "machine.h"
#include "proof/checks.h"

namespace hearth::cuda {
namespace {

// CI plays the small grid, `slow.cuda` the full one.
CaseGrid ChosenGrid() {
  return std::getenv("HEARTH_CUDA_FULL") != nullptr ? CaseGrid::kFull : CaseGrid::kSmall;
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

// A machine that remembers what it was asked to run.
class Recorder : public Machine {
 public:
  std::string name() const override { return "recorder"; }
  void Run(const std::string& kernel, const Launch& launch, const void* args, size_t size,
           const DeviceMemory& memory) override {
    kernels.insert(kernel);
    machine_->Run(kernel, launch, args, size, memory);
  }
  std::set<std::string> kernels;

 private:
  const std::unique_ptr<Machine> machine_ = SourceEmulator(Schedule::kForward);
};

TEST(CudaKernelsList, EveryKernelIsChecked) {
  std::ifstream file(std::string(HEARTH_SOURCE_DIR) + "/src/cuda/kernels.cu");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex name("hearth_[a-z0-9_]+(?=[(])");
  std::set<std::string> known;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), name); at != std::sregex_iterator();
       ++at) {
    known.insert(at->str());
  }
  Recorder recorder;
  for (const Check& check : kChecks) EXPECT_EQ(check.run(recorder, CaseGrid::kTiny), "");
  EXPECT_GT(known.size(), 20u);
  EXPECT_EQ(recorder.kernels, known);
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
