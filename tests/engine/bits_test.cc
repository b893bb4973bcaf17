// SPDX-License-Identifier: Apache-2.0
// What a request hears, token ids and bits of logits, on the real backend: alone against batches of
// random neighbours, prefix hits, preemption, cancels and any cutting into chunks.
#include <gtest/gtest.h>

#include "bits_cases.h"
#include "testing/data.h"

namespace hearth {
namespace {

using ::hearth::testing::DataPath;
using ::hearth::testing::WorkPath;
using testing::BitsTest;

void CompareAll(const char* name, const std::string& path, BitsTest& test, int cases, int total,
                int per_world, int ample) {
  HEARTH_SKIP_WITHOUT(path);
  test.Define(cases);
  int compared = 0;
  // Who is preempted depends on when requests come: where few were, more worlds are played.
  const auto is_enough = [&] {
    return compared >= total && (test.num_preempted() > total / 50 || compared >= 4 * total);
  };
  while (!is_enough() && !::testing::Test::HasFailure()) {
    compared += test.Compare(per_world, AnyWorld(test, ample));
  }
  test.Tell(name, compared);
  EXPECT_GT(test.num_hits(), total / 10);
  EXPECT_GT(test.num_preempted(), total / 50);
}

TEST(EngineBits, TinyOss) {
  const std::string path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 1, 90, 24);
  CompareAll("tiny-oss", path, test, 120, 3800, 250, 160);
}

TEST(EngineBits, Stories15M) {
  const std::string path = DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 2, 40, 10);
  CompareAll("stories15M", path, test, 60, 1200, 150, 80);
}

TEST(EngineBits, SmolLm2) {
  const std::string path = WorkPath("smollm2.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 3, 30, 4);
  CompareAll("SmolLM2", path, test, 16, 64, 36, 24);
}

}  // namespace
}  // namespace hearth
