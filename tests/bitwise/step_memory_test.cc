// SPDX-License-Identifier: Apache-2.0
// What is reserved when a backend opens is what its largest steps take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cpu/step_memory.h"
#include "format_models.h"
#include "testing/data.h"
#include "testing/largest_steps.h"
#include "testing/loaded_model.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::LargestSteps;

Model ModelOf(const char* arch, DType dtype) {
  const testing::TempDir dir;
  const std::string path = dir.Path("model.gguf");
  std::ofstream(path, std::ios::binary) << testing::FormatModel::Build(arch, dtype, 7);
  return testing::LoadedModel(path);
}

TEST(StepMemory, TheLargestStepsFindTheirsWhereNoneIsLeft) {
  if (!testing::kCanLimitMemory) GTEST_SKIP() << "a sanitizer takes address space of its own";
  for (const char* arch : {"llama", "qwen3moe"}) {
    for (const DType dtype : {DType::kF32, DType::kQ8_0, DType::kQ4_K, DType::kIq2Xxs}) {
      for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
        EXPECT_EQ(LargestSteps(ModelOf(arch, dtype), numerics).Wrong(), "")
            << arch << " " << NameOf(dtype) << " " << static_cast<int>(numerics);
      }
    }
  }
  for (const char* name : {"golden/tiny-oss-mxfp4.gguf", "golden/tiny-oss-f32.gguf"}) {
    Model model = testing::LoadedModel(testing::DataPath(name));
    EXPECT_EQ(LargestSteps(model).Wrong(), "") << name;
    // Logits that are no whole panels pass through a buffer of their own.
    model.spec.vocab_size = model.head.rows = model.embedding.rows = 250;
    EXPECT_EQ(LargestSteps(model).Wrong(), "") << name;
  }
}

// Rows beyond those that were reserved, where there is no memory for them.
TEST(StepMemory, AStepBeyondThePlanFailsAlone) {
  if (!testing::kCanLimitMemory) GTEST_SKIP() << "a sanitizer takes address space of its own";
  // Logits that are no whole panels pass through a buffer, which so many rows make grow.
  Model model = testing::LoadedModel(testing::DataPath("golden/tiny-oss-mxfp4.gguf"));
  model.spec.vocab_size = model.head.rows = model.embedding.rows = 250;
  CpuOptions options = LargestSteps(model).options();
  options.max_step_tokens = 4096;
  options.max_rows = 1;
  options.kv_blocks = {16};
  Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(model, options);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  BlockTable table(16);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<BlockId>(i);
  const std::vector<BlockTable> tables((*backend)->kv_layout().groups.size(), table);
  StepPlan wide, narrow;
  for (int s = 0; s < 16; ++s) {
    for (int i = 0; i < 256; ++i) wide.tokens.push_back(i % 90);
    SeqSlice slice;
    slice.first = slice.first_row = 256 * s;
    slice.count = slice.num_rows = 256;
    slice.tables = tables;
    wide.slices.push_back(slice);
  }
  wide.num_rows = 4096;
  narrow.tokens = {1, 2, 3};
  narrow.slices.push_back(wide.slices[0]);
  narrow.slices[0].count = 3;
  narrow.slices[0].num_rows = narrow.num_rows = 1;
  const testing::NoMoreMemory limit;
  const auto refused = RunStep(**backend, wide);
  EXPECT_EQ(refused.status().code(), Code::kExhausted);
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("4096 tokens"));
  EXPECT_TRUE(RunStep(**backend, narrow).ok()) << "the next step is as good as ever";
}

TEST(StepMemory, GrowsAndIsNoWorseForHavingFailed) {
  Scratch<float> rows;
  rows.Room(100)[99] = 1;
  EXPECT_THROW(rows.Room(int64_t{1} << 58), std::bad_alloc);
  rows.Room(100)[99] = 1;
  ScratchArena counted;
  rows.Reserve(counted, 5000);
  Result<ScratchArena> arena = ScratchArena::Make(counted.used_bytes());
  ASSERT_TRUE(arena.ok());
  rows.Reserve(*arena, 5000);
  float* reserved = rows.data();
  EXPECT_EQ(rows.Room(5000), reserved);
  EXPECT_THROW(rows.Room(int64_t{1} << 58), std::bad_alloc);
  EXPECT_EQ(rows.Room(5000), reserved) << "what was reserved stays";
}

TEST(StepMemory, ThePlanSaysWhatIsReserved) {
  const Model model = ModelOf("qwen3moe", DType::kQ4_K);
  BackendOptions options;
  options.num_threads = 2;
  const auto bytes_of = [&](int tokens, int rows) {
    options.max_step_tokens = tokens;
    options.max_rows = rows;
    Result<BackendPlan> plan = CpuBackends().Plan(model, options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? plan->step_bytes : 0;
  };
  const StepNeeds needs = StepNeedsOf(model, Numerics::kExact);
  EXPECT_EQ(bytes_of(512, 64), StepMemory::BytesFor(model.spec, needs, {512, 64, 2, false}));
  // By hand: floats of one token are x twice, h, q, k, v, mixed, out, and two experts' gate, up,
  // down.
  const auto& spec = model.spec;
  const int64_t heads = spec.n_heads * spec.d_head, kv = spec.n_kv_heads * spec.d_head;
  const int64_t floats =
      4 * spec.d_model + 2 * heads + 2 * kv + int64_t{2} * (2 * spec.d_ff_expert + spec.d_model);
  EXPECT_GT(bytes_of(2048, 64) - bytes_of(1024, 64), 1024 * 4 * floats);
  EXPECT_LT(bytes_of(2048, 64) - bytes_of(1024, 64), 1024 * 8 * floats);
}

}  // namespace
}  // namespace hearth
