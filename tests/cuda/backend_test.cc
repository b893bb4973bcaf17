// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on the mock driver: the bits of the CPU backend, in any batch and slicing, block
// copies, and refusals.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

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

TEST(CudaBackend, HasTheCpusBitsWithKQuants) {
  CompareSupers("llama", kMixedQ4K);
  CompareSupers("qwen3moe", kMixedRest);
}

TEST(CudaBackend, HasTheCpusBitsWithSmallBlocks) {
  CompareSupers("llama", kMixedBlocks);
  CompareSupers("qwen3moe", kMixedBlocks);
}

TEST(CudaBackend, TakesRowsInPieces) { CompareRowsInPieces(); }
TEST(CudaBackend, AnswersWhatRowsAreAskedFor) { CompareAsks(); }
TEST(CudaBackend, AttendsInPieces) {
  CompareAttentionInPieces(5, 44, 4);
  CompareAttentionInPieces(2, 1098, 1);
  CompareQuantisedPieces();
}
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
  CompareSupers("llama", kMixedQ4K);
  CompareAttentionInPieces(5, 44, 4);
  CompareAttentionInPieces(2, 1098, 1);
  CompareQuantisedPieces();
  unsetenv("HEARTH_MOCK_PTX");
}

// Launches of a step with so many tokens of one sequence, by the first that cannot be refused.
int NumLaunches(const Model& model, int tokens) {
  int least = 0, most = 200;
  while (least < most) {
    const int middle = (least + most) / 2;
    const MockSettings settings("launch=" + std::to_string(middle));
    auto gpu = OpenMocked(model, {});
    EXPECT_TRUE(gpu.ok()) << gpu.status().message();
    Rng rng(13);
    const int lengths[] = {tokens};
    std::vector<Running> all = Sequences(model, lengths, 16, rng);
    if (RunStep(**gpu, NextStep(all, tokens, 1)).ok()) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return least;
}

int CostOf(const std::string& what) {
  std::ifstream file(std::string(HEARTH_SOURCE_DIR) + "/src/cuda/costs.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name;
    int value = 0;
    if (words >> word >> name >> value && word == "launches" && name == what) return value;
  }
  ADD_FAILURE() << "no launches of " << what;
  return 0;
}

// Matrices of one input and several formats take a launch each.
TEST(CudaBackend, LaunchesAsOftenAsCostsTell) {
  const testing::TempDir dir;
  dir.Write("dense.gguf", RandomSupers(WideModel("llama", kMixedQ4K), 6));
  dir.Write("experts.gguf", RandomSupers(WideModel("qwen3moe", kMixedRest), 6));
  const Model dense = LoadedModel(dir.Path("dense.gguf"));
  const Model experts = LoadedModel(dir.Path("experts.gguf"));
  const int around = CostOf("around");
  EXPECT_EQ(NumLaunches(dense, 1), around + 2 * (CostOf("dense") + 1));
  EXPECT_EQ(NumLaunches(experts, 1), around + 2 * (CostOf("experts") + 3));
  EXPECT_EQ(NumLaunches(dense, 2), around + 2 * (CostOf("prompt-dense") + 1));
  EXPECT_EQ(NumLaunches(experts, 2), around + 2 * (CostOf("prompt-experts") + 3));
}

// What the documentation says of a decoded token, on models of one format.
TEST(CudaBackend, DecodesWithEightLaunchesALayer) {
  const testing::TempDir dir;
  dir.Write("dense.gguf", testing::RandomWeights(testing::TinyModel("llama"), 5));
  for (const std::string& path : {dir.Path("dense.gguf"), TinyOss()}) {
    const Model model = LoadedModel(path);
    const auto layers = static_cast<int>(model.spec.layers.size());
    EXPECT_EQ(NumLaunches(model, 1), CostOf("around") + 8 * layers) << path;
  }
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
  options = OptionsOf({});
  options.numerics = Numerics::kFast;
  EXPECT_THAT(MockedBackends().Complete(options).status().message(),
              HasSubstr("--numerics fast is for the CPU"));
  EXPECT_THAT(CudaBackendsWith({})->Complete(OptionsOf({})).status().message(),
              HasSubstr("built without CUDA kernels"));
  auto gpu = OpenMocked(model, {});
  ASSERT_TRUE(gpu.ok());
  StepPlan plan;
  plan.tokens = {model.spec.vocab_size};
  EXPECT_EQ((*gpu)->Begin(plan).code(), Code::kInvalid);
  plan.tokens.clear();
  plan.num_rows = 1;
  plan.asks = {{RowAsk::Kind::kTop, kMaxTop + 1}};
  EXPECT_THAT((*gpu)->Begin(plan).message(), HasSubstr("a GPU gives 64, or all"));
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
