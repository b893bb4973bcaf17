// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend must do as the CPU's does, shared by its tests and those of planted bugs.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "backend_rig.h"
#include "gpu/step_buffers.h"
#include "super_models.h"
#include "testing/kernels.h"
#include "testing/random_weights.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"
namespace hearth::cuda {

using testing::LoadedModel;
using testing::Rng;

// A sequence whose blocks are the same numbers in both backends.
struct Running {
  std::vector<Token> tokens;
  std::vector<BlockTable> tables;
  int num_computed = 0;
};

inline std::vector<Running> Sequences(const Model& model, std::span<const int> lengths, int blocks,
                                      Rng& rng) {
  std::vector<Running> all(lengths.size());
  for (size_t s = 0; s < all.size(); ++s) {
    for (int i = 0; i < lengths[s]; ++i) {
      all[s].tokens.push_back(rng.Int(0, model.spec.vocab_size - 1));
    }
  }
  for (size_t group = 0; group < CpuKvLayout(model.spec).groups.size(); ++group) {
    std::vector<int> ids(static_cast<size_t>(blocks));
    std::iota(ids.begin(), ids.end(), 0);
    for (size_t i = ids.size() - 1; i > 0; --i) {
      std::swap(ids[i], ids[static_cast<size_t>(rng.Int(0, static_cast<int>(i)))]);
    }
    for (Running& r : all) {
      BlockTable& table = r.tables.emplace_back();
      for (size_t i = 0; i < r.tokens.size(); i += kBlockTokens) {
        table.push_back(static_cast<BlockId>(ids.back()));
        ids.pop_back();
      }
    }
  }
  return all;
}

// The next tokens of each sequence, at most `most` of one; rows for the last `rows` of a slice.
inline StepPlan NextStep(std::vector<Running>& all, int most, int rows) {
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

// K and V that are numbers.
inline std::vector<std::byte> RandomBlock(const ModelSpec& spec, size_t size, Rng& rng) {
  std::vector<std::byte> bytes(size);
  const size_t codes = static_cast<size_t>(2 * kBlockTokens * spec.d_head) * sizeof(int16_t);
  const size_t head = codes + 2 * kBlockTokens * sizeof(float);
  for (size_t i = 0; i < size; i += sizeof(float)) {
    const float scale = 1.0f / static_cast<float>(rng.Int(16000, 64000));
    const uint8_t pair[4] = {rng.Byte(), rng.Byte(), rng.Byte(), rng.Byte()};
    std::memcpy(&bytes[i], i % head < codes ? static_cast<const void*>(pair) : &scale, 4);
  }
  return bytes;
}

// Logits of both backends, step by step, to the last bit. Returns how many were compared.
inline int64_t Compare(const Model& model, Backend& gpu, Backend& cpu, std::vector<Running> all,
                       int most, int rows) {
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

inline void CompareModel(const std::string& path, std::span<const int> lengths,
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

// A family in miniature, with weights that give logits worth comparing.
inline void CompareFamily(const char* family) {
  SCOPED_TRACE(family);
  testing::TempDir dir;
  dir.Write("model.gguf", testing::RandomWeights(testing::TinyModel(family), 5));
  const int lengths[] = {21, 2}, short_ones[] = {3, 2};
  CompareModel(dir.Path("model.gguf"), lengths, {8}, {});
  CompareModel(dir.Path("model.gguf"), short_ones, {1}, {});
}

inline void CompareSupers(const char* family, const TypesByName& types) {
  SCOPED_TRACE(family);
  testing::TempDir dir;
  dir.Write("supers.gguf", RandomSupers(WideModel(family, types), 6));
  const int lengths[] = {19, 2}, short_ones[] = {3, 2};
  CompareModel(dir.Path("supers.gguf"), lengths, {11}, {});
  CompareModel(dir.Path("supers.gguf"), short_ones, {1}, {});
}

// More rows than the device has room for at once, and than were planned for.
inline void CompareRowsInPieces() {
  const Model model = LoadedModel(TinyOss());
  RigOptions rig;
  rig.max_rows = 2;
  auto gpu = OpenMocked(model, rig);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto cpu = OpenCpu(model, rig);
  Rng rng(8);
  const int lengths[] = {7};
  EXPECT_GT(Compare(model, **gpu, **cpu, Sequences(model, lengths, rig.blocks, rng), 7, 7), 0);
}

// Rows that want logits, a token or the largest, more than the device has room for at once.
inline void CompareAsks() {
  const Model model = LoadedModel(TinyOss());
  RigOptions rig;
  rig.max_rows = 3;
  auto gpu = OpenMocked(model, rig);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto cpu = OpenCpu(model, rig);
  Rng rng(12);
  const int lengths[] = {8};
  std::vector<Running> all = Sequences(model, lengths, rig.blocks, rng);
  StepPlan plan = NextStep(all, 8, 8);
  using Kind = RowAsk::Kind;
  plan.asks = {{Kind::kToken},  {Kind::kTop, 5}, {Kind::kLogits}, {Kind::kTop, 1},
               {Kind::kLogits}, {Kind::kLogits}, {Kind::kToken},  {Kind::kTop, kMaxTop}};
  auto want = RunStep(**cpu, plan);
  auto got = RunStep(**gpu, plan);
  ASSERT_TRUE(want.ok()) << want.status().message();
  ASSERT_TRUE(got.ok()) << got.status().message();
  ASSERT_EQ(want->size(), got->size());
  for (size_t row = 0; row < want->size(); ++row) {
    const RowResult &one = (*want)[row], &other = (*got)[row];
    EXPECT_EQ(one.token, other.token) << row;
    ASSERT_EQ(one.logits.size(), other.logits.size()) << row;
    EXPECT_EQ(std::memcmp(one.logits.data(), other.logits.data(), one.logits.size_bytes()), 0);
    ASSERT_EQ(one.top.size(), other.top.size()) << row;
    for (size_t i = 0; i < one.top.size(); ++i) {
      EXPECT_EQ(one.top[i].token, other.top[i].token) << row << " " << i;
      EXPECT_EQ(one.top[i].logit, other.top[i].logit) << row << " " << i;
    }
  }
}

// A context of many spans, of which not all tokens of a step can leave parts at once; its blocks
// come from the host. Beside it a sequence of `other` tokens.
inline void CompareAttentionInPieces(Model model, int step_tokens, int other, int most) {
  model.spec.max_context = 2048;
  RigOptions rig;
  rig.max_step_tokens = step_tokens;
  rig.blocks = 150;
  auto gpu = OpenMocked(model, rig);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto cpu = OpenCpu(model, rig);
  Rng rng(10);
  const int lengths[] = {1100, other};
  std::vector<Running> all = Sequences(model, lengths, rig.blocks, rng);
  const KvLayout layout = (*gpu)->kv_layout();
  std::vector<std::vector<std::byte>> bytes;
  StepPlan fill;
  for (int g = 0; g < layout.num_groups(); ++g) {
    const auto size = static_cast<size_t>(layout.group(g).block_bytes);
    for (int b = 0; b < rig.blocks; ++b) bytes.push_back(RandomBlock(model.spec, size, rng));
  }
  for (int g = 0; g < layout.num_groups(); ++g) {
    for (int b = 0; b < rig.blocks; ++b) {
      const auto& block = bytes[static_cast<size_t>(g * rig.blocks + b)];
      fill.copies.push_back({g, static_cast<BlockId>(b), {}, block});
    }
  }
  ASSERT_TRUE(RunStep(**gpu, fill).ok());
  ASSERT_TRUE(RunStep(**cpu, fill).ok());
  all[0].num_computed = 1096;
  all[1].num_computed = other - 1;
  EXPECT_GT(Compare(model, **gpu, **cpu, all, most, 1), 0);
}
inline void CompareAttentionInPieces(int step_tokens, int other, int most) {
  CompareAttentionInPieces(LoadedModel(TinyOss()), step_tokens, other, most);
}
// With a product behind it that reads what attention gave as integers.
inline void CompareQuantisedPieces() {
  const testing::TempDir dir;
  dir.Write("supers.gguf", RandomSupers(WideModel("llama", kMixedQ4K), 6));
  CompareAttentionInPieces(LoadedModel(dir.Path("supers.gguf")), 2, 1098, 1);
}

// What one backend computed, the other goes on with.
inline void CompareExchangedBlocks() {
  const Model model = LoadedModel(TinyOss());
  auto gpu = OpenMocked(model, {});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto cpu = OpenCpu(model, {});
  Rng rng(9);
  const int lengths[] = {33};
  std::vector<Running> all = Sequences(model, lengths, 16, rng);
  // The first 32 tokens on the GPU, their blocks to the CPU and back to other blocks of the GPU.
  const StepPlan start = NextStep(all, 32, 1);
  ASSERT_FALSE(testing::LogitsOf(**gpu, start).empty());
  const KvLayout layout = (*gpu)->kv_layout();
  std::vector<std::vector<std::byte>> bytes;
  StepPlan out, to_cpu, back;
  for (int g = 0; g < layout.num_groups(); ++g) {
    for (int b = 0; b < 2; ++b)
      bytes.emplace_back(static_cast<size_t>(layout.group(g).block_bytes));
  }
  std::vector<BlockTable> moved = all[0].tables;
  for (int g = 0; g < layout.num_groups(); ++g) {
    auto& table = moved[static_cast<size_t>(g)];
    for (size_t b = 0; b < 2; ++b) {
      std::vector<std::byte>& block = bytes[static_cast<size_t>(2 * g) + b];
      out.copies.push_back({g, table[b], block, {}});
      to_cpu.copies.push_back({g, table[b], {}, block});
      table[b] = static_cast<BlockId>((static_cast<int>(table[b]) + 5) % 16);
      back.copies.push_back({g, table[b], {}, block});
    }
  }
  ASSERT_TRUE(RunStep(**gpu, out).ok());
  ASSERT_TRUE(RunStep(**cpu, to_cpu).ok());
  StepPlan last = NextStep(all, 1, 1);
  const std::vector<float> want = testing::LogitsOf(**cpu, last);
  const std::vector<float> same = testing::LogitsOf(**gpu, last);
  back.tokens = last.tokens;
  back.slices = last.slices;
  back.num_rows = last.num_rows;
  // The block that the last token goes to stays where it is, or is one that was moved to.
  for (auto& table : moved) table[2] = static_cast<BlockId>(15);
  for (auto& table : moved) {
    if (table[0] == table[2] || table[1] == table[2]) table[2] = static_cast<BlockId>(14);
  }
  back.slices[0].tables = moved;
  const std::vector<float> got = testing::LogitsOf(**gpu, back);
  ASSERT_EQ(want.size(), static_cast<size_t>(model.spec.vocab_size));
  EXPECT_EQ(std::memcmp(want.data(), same.data(), want.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0);
}

}  // namespace hearth::cuda
