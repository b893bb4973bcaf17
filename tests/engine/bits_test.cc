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

// Leaves its steps after every layer, whether anybody wants that or not.
class Restless : public Backend {
 public:
  explicit Restless(std::unique_ptr<Backend> inside) : inside_(std::move(inside)) {}
  std::string_view name() const override { return inside_->name(); }
  KvLayout kv_layout() const override { return inside_->kv_layout(); }
  int vocab_size() const override { return inside_->vocab_size(); }
  int hidden_size() const override { return inside_->hidden_size(); }
  BackendCapabilities capabilities() const override { return inside_->capabilities(); }
  Status Begin(const StepPlan& plan) override { return inside_->Begin(plan); }
  bool Advance(const WantsBreak& wants_break) override {
    wants_break();  // what came is looked at all the same
    return inside_->Advance([] { return true; });
  }
  Result<std::span<const RowResult>> Finish() override { return inside_->Finish(); }

 private:
  const std::unique_ptr<Backend> inside_;
};

TEST(EngineBits, TinyOssLeftAfterEveryLayer) {
  const std::string path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 4, 90, 24);
  test.Define(40);
  int compared = 0;
  while (compared < 600 && !HasFailure()) {
    testing::World world = AnyWorld(test, 160);
    world.max_step_tokens = std::min(world.max_step_tokens, 64);  // most have to wait
    world.open = [](const Model& model, const testing::World& of) {
      auto made = testing::Machine::OpenCpu(model, of);
      return made.ok()
                 ? Result<std::unique_ptr<Backend>>(std::make_unique<Restless>(*std::move(made)))
                 : std::move(made);
    };
    compared += test.Compare(100, world);
  }
  test.Tell("tiny-oss, left after every layer", compared);
  EXPECT_GT(test.num_breaks(), 100);
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
