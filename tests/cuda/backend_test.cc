// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on the mock driver: the bits of the CPU backend, in any batch and slicing, block
// copies, and refusals.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "backend_cases.h"
#include "testing/data.h"

namespace hearth::cuda {
namespace {

using ::testing::HasSubstr;

TEST(CudaBackend, HasTheCpusBitsWithExpertsSinksAndWindows) {
  const int lengths[] = {41, 7, 1};
  CompareModel(TinyOss(), lengths, {9, 64}, {});
  const int short_ones[] = {4, 2};
  CompareModel(TinyOss(), short_ones, {1}, {});
}

TEST(CudaBackend, HasTheCpusBitsWithFloatWeights) {
  const int lengths[] = {18, 3};
  CompareModel(std::string(HEARTH_SOURCE_DIR) + "/tests/golden/tiny-oss-f32.gguf", lengths, {9},
               {});
}

TEST(CudaBackend, HasTheCpusBitsOnRealModels) {
  for (const char* name : {"stories15M-q8_0.gguf", "stories15M-mxfp4.gguf"}) {
    const std::string path = testing::DataPath(std::string("models/") + name);
    HEARTH_SKIP_WITHOUT(path);
    const int lengths[] = {10};
    RigOptions rig;
    rig.max_rows = 2;
    CompareModel(path, lengths, {9}, rig);
  }
}

TEST(CudaBackend, HasTheCpusBitsInEveryFamily) {
  for (const char* family : {"llama", "qwen2", "qwen3", "qwen3moe", "gpt-oss"}) {
    CompareFamily(family);
  }
}

TEST(CudaBackend, TakesRowsInPieces) { CompareRowsInPieces(); }
TEST(CudaBackend, AttendsInPieces) { CompareAttentionInPieces(); }
TEST(CudaBackend, ExchangesBlocksWithTheCpu) { CompareExchangedBlocks(); }

// The same through the PTX that nvcc wrote: every address that a kernel touches must be the
// device's.
TEST(CudaBackend, HasTheCpusBitsInPtx) {
  const std::string path = std::string(HEARTH_PTX_DIR) + "/sm_89.ptx";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
  }
  setenv("HEARTH_MOCK_PTX", path.c_str(), 1);
  CompareFamily("llama");
  CompareFamily("gpt-oss");
  CompareAttentionInPieces();
  unsetenv("HEARTH_MOCK_PTX");
}

TEST(CudaBackend, RefusesWhatItCannotDo) {
  const Model model = LoadedModel(TinyOss());
  BackendOptions options = OptionsOf({});
  options.device = "cuda:1";
  EXPECT_THAT(MockedBackends().Plan(model, options).status().message(),
              HasSubstr("no device cuda:1; the driver has 1 device"));
  options.device = "cuda:one";
  EXPECT_EQ(MockedBackends().Complete(options).status().code(), Code::kInvalid);
  options.device = "cuda:0";
  options.isa = "avx2";
  EXPECT_THAT(MockedBackends().Complete(options).status().message(), HasSubstr("for the CPU"));
  EXPECT_THAT(CudaBackendsWith({})->Complete(OptionsOf({})).status().message(),
              HasSubstr("built without CUDA kernels"));
  auto gpu = OpenMocked(model, {});
  ASSERT_TRUE(gpu.ok());
  StepPlan plan;
  plan.tokens = {model.spec.vocab_size};
  EXPECT_EQ((*gpu)->Begin(plan).code(), Code::kInvalid);
  EXPECT_EQ((*gpu)->name(), "sm_89");
}

TEST(CudaBackend, SaysHowMuchMemoryIsMissing) {
  const MockSettings settings("memory=1000000");
  const Model model = LoadedModel(TinyOss());
  Result<uint64_t> usable = MockedBackends().UsableBytes(OptionsOf({}));
  ASSERT_TRUE(usable.ok()) << usable.status().message();
  EXPECT_EQ(*usable, 937500u);
  const Status status = OpenMocked(model, {}).status();
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_THAT(status.message(), HasSubstr("on Mock GPU: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"));
}

}  // namespace
}  // namespace hearth::cuda
