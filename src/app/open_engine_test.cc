// SPDX-License-Identifier: Apache-2.0
#include "app/open_engine.h"

#include <gtest/gtest.h>

#include "app/open_model.h"
#include "engine/event_buffer.h"
#include "testing/data.h"

namespace hearth {
namespace {

using testing::DataPath;

constexpr int64_t kMib = 1 << 20;

TEST(OpenEngine, SharesTheMemoryOutAndNeverMoreThanThere) {
  const std::string path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  Result<Model> model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EngineFlags flags;
  flags.max_sequences = 8;
  flags.max_step_tokens = 64;
  const Result<EnginePlan> none = PlanEngine(*model, flags, 1000);
  EXPECT_EQ(none.status().code(), Code::kExhausted);
  for (const int64_t mib : {64, 128, 1024}) {
    Result<EnginePlan> plan = PlanEngine(*model, flags, static_cast<uint64_t>(mib * kMib));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_LE(plan->backend.total_bytes(), mib * kMib);
    ASSERT_EQ(plan->backend.kv.groups.size(), 2u);
    EXPECT_GT(plan->backend.kv.groups[0].num_blocks, 0);
    EXPECT_GT(plan->backend.kv.groups[1].num_blocks, 0);
    EXPECT_EQ(plan->engine.scheduler.experts.total, model->spec.n_experts);
    EXPECT_GT(plan->engine.scheduler.experts.active, 0);
  }
  flags.max_context = model->spec.max_context + 1;
  EXPECT_EQ(PlanEngine(*model, flags, 1024 * kMib).status().code(), Code::kInvalid);
  flags.max_context = model->spec.max_context;
  EXPECT_TRUE(PlanEngine(*model, flags, 1024 * kMib).ok());
  flags.kv_bytes = 100 * kMib;
  EXPECT_EQ(PlanEngine(*model, flags, 64 * kMib).status().code(), Code::kExhausted);
}

TEST(OpenEngine, TheEngineAnswers) {
  const std::string path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  Result<Model> model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EngineFlags flags;
  flags.kv_bytes = 16 * kMib;
  flags.max_sequences = 4;
  flags.max_step_tokens = 64;
  Result<std::unique_ptr<Engine>> engine = OpenEngine(*model, flags);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 5;
  const auto buffer = std::make_shared<EventBuffer>();
  ASSERT_TRUE((*engine)->Submit(request, buffer).ok());
  (*engine)->Drain(60'000'000);
  EXPECT_EQ(buffer->Take().size(), 5u);
  EXPECT_EQ(buffer->ended()->finish, Finish::kLength);
}

}  // namespace
}  // namespace hearth
