// SPDX-License-Identifier: Apache-2.0
// Steps as graphs on the mock driver: the CPU's bits, one call for a step, and what happens when
// the driver has no memory for a graph or loses the device in one.
#include <gmock/gmock.h>

#include "graph_cases.h"

namespace hearth::cuda {
namespace {

using ::testing::HasSubstr;

TEST(CudaGraphs, HaveTheCpusBitsWhileSequencesComeAndGo) { CompareGraphs(); }
TEST(CudaGraphs, HaveTheCpusBitsWhileContextsGrow) { CompareGraphsOfSpans(); }
TEST(CudaGraphs, AnswerWhatEachStepIsAskedFor) { CompareGraphsOfAsks(); }

// A step of one token, the same shape each time.
class Decoding {
 public:
  Decoding() : both_(LoadedModel(TinyOss()), {}), rng_(24) {
    const int lengths[] = {12};
    all_ = Sequences(both_.model, lengths, 16, rng_);
  }
  Backend& gpu() { return *both_.gpu; }
  StepPlan Next() { return NextStep(all_, 1, 1); }
  // Whether one more step has the CPU's bits.
  bool IsRight() {
    const StepPlan plan = Next();
    const std::vector<float> want = testing::LogitsOf(*both_.cpu, plan);
    const std::vector<float> got = testing::LogitsOf(*both_.gpu, plan);
    return want.size() == got.size() &&
           std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0;
  }

 private:
  TwoBackends both_;
  Rng rng_;
  std::vector<Running> all_;
};

TEST(CudaGraphs, AStepIsOneCallFromItsThirdTimeOn) {
  Decoding decoding;
  EXPECT_TRUE(decoding.IsRight());
  EXPECT_TRUE(decoding.IsRight());
  const long launches = MockCount("launch"), graphs = MockCount("graph");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(decoding.IsRight());
  EXPECT_EQ(MockCount("launch"), launches);
  EXPECT_EQ(MockCount("graph"), graphs + 5);
}

TEST(CudaGraphs, WithoutMemoryForOneStepsStaySingleLaunches) {
  const MockSettings settings("graph=0");
  Decoding decoding;
  const long graphs = MockCount("graph");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(decoding.IsRight());
  EXPECT_EQ(MockCount("graph"), graphs);
}

// Launches of the second step are written down; any of them, and the graph itself, can be refused.
TEST(CudaGraphs, ARefusedLaunchEndsItsStepAlone) {
  long each = 0;
  {
    Decoding decoding;
    const long before = MockCount("launch");
    EXPECT_TRUE(decoding.IsRight());
    each = MockCount("launch") - before;
  }
  for (const long place : {each, each + each / 2, 2 * each - 1, 2 * each, 2 * each + 1}) {
    SCOPED_TRACE(place);
    const MockSettings settings("launch=" + std::to_string(place));
    Decoding decoding;
    int num_failed = 0;
    for (int i = 0; i < 4; ++i) {
      const StepPlan plan = decoding.Next();
      Status status = RunStep(decoding.gpu(), plan).status();
      if (!status.ok()) {
        EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
        ++num_failed;
        status = RunStep(decoding.gpu(), plan).status();
      }
      EXPECT_TRUE(status.ok()) << status.message();
    }
    EXPECT_EQ(num_failed, 1);
  }
}

TEST(CudaGraphs, ADeviceLostInOneStaysLost) {
  const MockSettings settings("crash=150");
  Decoding decoding;
  Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) {
    status = RunStep(decoding.gpu(), decoding.Next()).status();
  }
  EXPECT_THAT(status.message(), HasSubstr("Mock GPU stopped working"));
  EXPECT_FALSE(RunStep(decoding.gpu(), decoding.Next()).ok());
}

}  // namespace
}  // namespace hearth::cuda
