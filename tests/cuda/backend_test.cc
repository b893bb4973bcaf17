// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on the mock driver: the bits of the CPU backend, in any batch and slicing, block
// copies, and refusals.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backend_rig.h"
#include "testing/kernels.h"

namespace hearth::cuda {
namespace {

using ::testing::HasSubstr;
using testing::LoadedModel;
using testing::Rng;

// A sequence whose blocks are the same numbers in both backends.
struct Running {
  std::vector<Token> tokens;
  std::vector<BlockTable> tables;
  int num_computed = 0;
};

std::vector<Running> Sequences(const Model& model, std::span<const int> lengths, int blocks,
                               Rng& rng) {
  std::vector<int> ids(static_cast<size_t>(blocks));
  std::iota(ids.begin(), ids.end(), 0);
  for (size_t i = ids.size() - 1; i > 0; --i) {
    std::swap(ids[i], ids[static_cast<size_t>(rng.Int(0, static_cast<int>(i)))]);
  }
  std::vector<Running> all;
  for (const int length : lengths) {
    Running& r = all.emplace_back();
    for (int i = 0; i < length; ++i) r.tokens.push_back(rng.Int(0, model.spec.vocab_size - 1));
    BlockTable table;
    for (int i = 0; i < length; i += kBlockTokens) {
      table.push_back(static_cast<BlockId>(ids.back()));
      ids.pop_back();
    }
    r.tables.assign(CpuKvLayout(model.spec).groups.size(), table);
  }
  return all;
}

// The next tokens of each sequence, at most `most` of one; rows for the last `rows` of a slice.
StepPlan NextStep(std::vector<Running>& all, int most, int rows) {
  StepPlan plan;
  for (Running& r : all) {
    const int left = static_cast<int>(r.tokens.size()) - r.num_computed;
    const int count = std::min(left, most);
    if (count == 0) continue;
    SeqSlice slice;
    slice.first = static_cast<int>(plan.tokens.size());
    slice.count = count;
    slice.num_computed = r.num_computed;
    slice.tables = r.tables;
    slice.first_row = plan.num_rows;
    slice.num_rows = std::min(count, rows);
    plan.num_rows += slice.num_rows;
    plan.tokens.insert(plan.tokens.end(), r.tokens.begin() + r.num_computed,
                       r.tokens.begin() + r.num_computed + count);
    plan.slices.push_back(slice);
    r.num_computed += count;
  }
  return plan;
}

// Logits of both backends, step by step, to the last bit. Returns how many were compared.
int64_t Compare(const Model& model, Backend& gpu, Backend& cpu, std::vector<Running> all, int most,
                int rows) {
  int64_t compared = 0;
  for (;;) {
    const StepPlan plan = NextStep(all, most, rows);
    if (plan.slices.empty()) return compared;
    const std::vector<float> want = testing::LogitsOf(cpu, plan);
    const std::vector<float> got = testing::LogitsOf(gpu, plan);
    EXPECT_EQ(want.size(), static_cast<size_t>(plan.num_rows * model.spec.vocab_size));
    if (want.size() != got.size()) return 0;
    if (std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) != 0) {
      ADD_FAILURE() << testing::Difference(want.data(), got.data(), want.size());
      return 0;
    }
    for (const float logit : want) {
      if (!std::isfinite(logit)) {
        ADD_FAILURE() << "a logit is no number: nothing would be shown";
        return 0;
      }
    }
    compared += static_cast<int64_t>(want.size());
  }
}

void CompareModel(const std::string& path, std::span<const int> lengths,
                  std::initializer_list<int> chunks, const RigOptions& rig) {
  const Model model = LoadedModel(path);
  auto gpu = OpenMocked(model, rig);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto cpu = OpenCpu(model, rig);
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  Rng rng(7);
  int64_t compared = 0;
  for (const int chunk : chunks) {
    const auto all = Sequences(model, lengths, rig.blocks, rng);
    compared += Compare(model, **gpu, **cpu, all, chunk, chunk == 1 ? 1 : 3);
  }
  EXPECT_GT(compared, 0);
  std::printf("  %s: %lld logits, all bits equal\n", path.substr(path.rfind('/') + 1).c_str(),
              static_cast<long long>(compared));
}

TEST(CudaBackend, HasTheCpusBitsWithExpertsSinksAndWindows) {
  const int lengths[] = {41, 7, 1};
  CompareModel(TinyOss(), lengths, {1, 9, 64}, {});
}

}  // namespace
}  // namespace hearth::cuda
