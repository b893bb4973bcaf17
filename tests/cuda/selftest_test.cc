// SPDX-License-Identifier: Apache-2.0
// `hearth gpu`'s parts on the mock driver: the self test passes on a sound device and notices an
// unsound one; what fits is counted.
#include <gmock/gmock.h>

#include "backend_rig.h"
#include "gpu/gpu_fit.h"
#include "gpu/selftest.h"

namespace hearth::cuda {
namespace {

using ::testing::HasSubstr;

struct Told {
  Status status;
  int num_checks = 0, num_wrong = 0;
  int64_t num_compared = 0;
};
Told SelfTest() {
  Told told;
  told.status = RunSelfTest(0, std::as_bytes(std::span(kSourceImage)), CaseGrid::kTiny,
                            [&](const SelfTestResult& result) {
                              ++told.num_checks;
                              told.num_wrong += result.wrong.empty() ? 0 : 1;
                              told.num_compared += result.num_compared;
                            });
  return told;
}

TEST(GpuSelfTest, PassesOnASoundDevice) {
  const Told told = SelfTest();
  EXPECT_TRUE(told.status.ok()) << told.status.message();
  EXPECT_EQ(told.num_checks, static_cast<int>(std::size(kChecks)));
  EXPECT_EQ(told.num_wrong, 0);
  EXPECT_GT(told.num_compared, 100000);
}

// A device that forgets one launch of the first check.
TEST(GpuSelfTest, NoticesALaunchThatDidNothing) {
  const MockSettings settings("idle=1");
  const Told told = SelfTest();
  EXPECT_TRUE(told.status.ok()) << told.status.message();
  EXPECT_EQ(told.num_wrong, 1);
}

TEST(GpuSelfTest, TellsWhatTheDriverSays) {
  {
    const MockSettings settings("alloc=3");
    const Told told = SelfTest();
    EXPECT_EQ(told.status.code(), Code::kExhausted);
    EXPECT_THAT(told.status.message(), HasSubstr("norm: "));
    EXPECT_EQ(told.num_checks, 0);
  }
  {
    const MockSettings settings("crash=2");
    EXPECT_THAT(SelfTest().status.message(), HasSubstr("Mock GPU stopped working"));
  }
  const Status none = RunSelfTest(1, std::as_bytes(std::span(kSourceImage)), CaseGrid::kTiny,
                                  [](const SelfTestResult&) {});
  EXPECT_EQ(none.code(), Code::kNotFound);
}

TEST(GpuFit, CountsWhatIsLeftForAContext) {
  const Model model = testing::LoadedModel(TinyOss());
  Result<DeviceFacts> facts = FactsOf(0);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->level, "sm_89");
  EXPECT_EQ(facts->num_processors, 4);
  EXPECT_EQ(facts->nominal_bandwidth, 16e9);
  BackendOptions options;
  options.max_step_tokens = 64;
  options.max_rows = 1;
  Result<GpuFit> all = FitOf(model, *facts, uint64_t{1} << 30, options);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->context_tokens, model.spec.max_context);
  const auto least = static_cast<uint64_t>(all->weight_bytes + all->step_bytes);
  const KvLayout layout = CpuKvLayout(model.spec);
  uint64_t block = 0;
  for (const KvGroupLayout& group : layout.groups)
    block += static_cast<uint64_t>(group.block_bytes);
  EXPECT_EQ(FitOf(model, *facts, least + block - 1, options)->context_tokens, 0);
  EXPECT_EQ(FitOf(model, *facts, least + block, options)->context_tokens, layout.block_tokens);
  EXPECT_EQ(FitOf(model, *facts, 0, options)->context_tokens, 0);
}

}  // namespace
}  // namespace hearth::cuda
