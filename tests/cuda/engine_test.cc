// SPDX-License-Identifier: Apache-2.0
// The real engine on the CUDA backend and the mock driver: what requests hear among neighbours,
// with chunked prompts, prefix hits, preemption, cancels and drafts, is what they heard alone on
// the CPU.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend_rig.h"
#include "bits_cases.h"
#include "testing/data.h"

namespace hearth::cuda {
namespace {

using testing::BitsTest;
using testing::World;

bool IsSlow() { return std::getenv("HEARTH_CUDA_FULL") != nullptr; }

World OnGpu(World world) {
  world.open = [](const Model& model, const World& wanted) {
    RigOptions rig;
    rig.max_step_tokens = wanted.max_step_tokens;
    rig.max_rows = 16;
    rig.blocks = wanted.full_blocks;
    return OpenMocked(model, rig);
  };
  return world;
}

void Compare(const char* name, BitsTest& test, int cases, int requests, int per_world, int ample) {
  test.Define(cases);
  int compared = 0;
  for (int step_tokens = 33; compared < requests && !::testing::Test::HasFailure();) {
    World world;
    world.full_blocks = world.window_blocks = step_tokens == 33 ? ample / 4 : ample;
    world.max_step_tokens = step_tokens;
    world.max_sequences = 8;
    compared += test.Compare(per_world, OnGpu(world));
    step_tokens = step_tokens == 33 ? 64 : 33;
  }
  test.Tell(name, compared);
  EXPECT_GT(test.num_hits(), 0);
  if (IsSlow()) {
    EXPECT_GT(test.num_preempted(), 0);  // that needs many requests
  }
}

TEST(CudaEngine, TinyOssHearsTheCpusTokens) {
  BitsTest test(TinyOss(), 1, IsSlow() ? 40 : 24, IsSlow() ? 8 : 3);
  if (IsSlow()) {
    Compare("tiny-oss", test, 60, 600, 150, 48);
  } else {
    Compare("tiny-oss", test, 8, 10, 10, 12);
  }
}

TEST(CudaEngine, Stories15MHearsTheCpusTokens) {
  const std::string path = testing::DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 2, 24, 3);
  if (!IsSlow()) GTEST_SKIP() << "only in slow.cuda.engine";
  Compare("stories15M q8_0", test, 12, 60, 30, 24);
}

TEST(CudaEngine, Stories15MInMxfp4HearsTheCpusTokens) {
  const std::string path = testing::WorkPath("stories15M-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 3, 24, 3);
  if (!IsSlow()) GTEST_SKIP() << "only in slow.cuda.engine";
  Compare("stories15M mxfp4", test, 12, 30, 30, 24);
}

}  // namespace
}  // namespace hearth::cuda
