// SPDX-License-Identifier: Apache-2.0
// A weight format that src/ has never heard of: read from a GGUF file, packed its own way,
// multiplied by its own kernel, and run by the real engine on the CPU backend. Without a kernel it
// runs, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "bits_rig.h"
#include "cpu/pack_format.h"
#include "model/reference.h"
#include "tensor/block_format.h"
#include "tensor/quant.h"
#include "testing/random_weights.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"
#include "weights/gguf.h"

namespace hearth {
namespace {

using testing::GgufBuilder;
using ::testing::HasSubstr;

// "Pebble": eight values share a float and have a byte each.
constexpr int kElems = 8, kBytes = 12;

void DecodePebble(const uint8_t* block, float* out) {
  float scale = 0;
  std::memcpy(&scale, block, sizeof(scale));
  for (int i = 0; i < kElems; ++i) out[i] = scale * static_cast<int8_t>(block[4 + i]);
}

const BlockFormat kSlowPebble = {"PEBBLE", {kElems, kBytes}, DecodePebble};
const BlockFormat kFastPebble = {"PEBBLE_FAST", {kElems, kBytes}, DecodePebble};
constexpr uint32_t kSlowId = 1000, kFastId = 1001;

// Packed: the blocks of a row as they are, a row after the other, up to a line.
int64_t RowBytes(int cols) { return (int64_t{cols} / kElems * kBytes + 63) / 64 * 64; }
const uint8_t* RowOf(const PackedMatrix& packed, int row) {
  return packed.data + row / kPanelRows * packed.panel_bytes +
         row % kPanelRows * RowBytes(packed.cols);
}
bool PackPebble(const MatView& matrix, int first_row, int count, uint8_t* panel,
                std::vector<SpilledBlock>&) {
  std::memset(panel, 0, static_cast<size_t>(kPanelRows * RowBytes(matrix.cols)));
  bool plausible = true;
  for (int i = 0; i < count; ++i) {
    const std::byte* row = matrix.data + (first_row + i) * matrix.row_bytes;
    const auto bytes = static_cast<size_t>(matrix.cols / kElems * kBytes);
    std::memcpy(panel + i * RowBytes(matrix.cols), row, bytes);
    plausible &= CheckBlocks(matrix.dtype, {row, bytes}).ok();
  }
  return plausible;
}
void UnpackPebble(const PackedMatrix& packed, int row, float* out) {
  for (int c = 0; c < packed.cols; c += kElems) {
    DecodePebble(RowOf(packed, row) + c / kElems * kBytes, out + c);
  }
}
std::atomic<int> num_products = 0;
void MultiplyPebble(const MatmulArgs& args, int panel_begin, int panel_end) {
  ++num_products;
  const PackedMatrix& w = *args.w;
  const int end = std::min(panel_end * kPanelRows, w.rows);
  std::vector<float> row(static_cast<size_t>(w.cols));
  for (int r = panel_begin * kPanelRows; r < end; ++r) {
    UnpackPebble(w, r, row.data());
    for (int t = 0; t < args.x->m; ++t) {
      double sum = args.bias != nullptr ? static_cast<double>(args.bias[r]) : 0.0;
      const float* x = args.xf + t * args.xf_stride;
      for (size_t c = 0; c < row.size(); ++c)
        sum += static_cast<double>(row[c]) * static_cast<double>(x[c]);
      args.y[t * args.y_stride + r] = static_cast<float>(sum);
    }
  }
}
const PackFormat kPebblePack = {
    .name = "pebble",
    .unit = kElems,
    .strip = 0,
    .panel_bytes = [](DType, int cols) { return kPanelRows * RowBytes(cols); },
    .pack = PackPebble,
    .check = [](const PackedMatrix&, const uint8_t*) { return true; },
    .unpack_row = UnpackPebble,
    .matmul = MultiplyPebble,
};

// Once per process, as a program does at its start.
void AddPebbles() {
  static const bool added = [] {
    AddGgufType(kSlowId, AddBlockFormat(kSlowPebble));
    const DType fast = AddBlockFormat(kFastPebble);
    AddGgufType(kFastId, fast);
    AddPackFormat(fast, kPebblePack);
    return true;
  }();
  ASSERT_TRUE(added);
}

// A tiny qwen3 with every matrix, the embedding too, in the format of this number.
std::string PebbleModel(uint32_t id) {
  GgufBuilder b = testing::TinyModel("qwen3");
  testing::SetNumber(b, "qwen3.context_length", 256);
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (tensor.ne.size() < 2) continue;
    tensor.type = id;
    tensor.data_bytes = tensor.ne[0] * tensor.ne[1] / kElems * kBytes;
  }
  std::mt19937 random(5);
  return FilledWeights(b, [&](const GgufBuilder::Tensor& tensor, char* data, size_t size) {
    const size_t step = tensor.type == id ? kBytes : sizeof(float);
    for (size_t i = 0; i < size; i += step) {
      const float value = RandomWeight(tensor, random) / (tensor.type == id ? 64.0f : 1.0f);
      std::memcpy(data + i, &value, sizeof(value));
      for (size_t j = sizeof(float); j < step; ++j) data[i + j] = static_cast<char>(random());
    }
  });
}

Result<Model> Load(const std::string& bytes) {
  const testing::TempDir folder;
  folder.Write("model.gguf", bytes);
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> file, WeightFile::Open(folder.Path("model.gguf")));
  return LoadModel(std::move(file));
}

testing::Case Prompt(int length) {
  testing::Case c;
  for (int i = 0; i < length; ++i) c.request.prompt.push_back(i * 29 % 48);
  c.request.max_tokens = 6;
  c.request.sampling.temperature = 0;
  c.request.sampling.num_prompt_logprobs = 0;
  return c;
}

// The largest distance from the reference's log-probabilities of the prompt.
double FromReference(const Model& model, const testing::Case& c) {
  double worst = 0;
  const std::vector<Token>& prompt = c.request.prompt;
  Reference reference(model);
  const auto compare = [&](int position, std::span<const double> logits) {
    const auto next = static_cast<size_t>(position) + 1;
    if (next >= prompt.size()) return;
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    const double expected = logits[static_cast<size_t>(prompt[next])] - std::log(total);
    const double told = static_cast<double>(c.heard->prompt[next - 1].chosen.logprob);
    worst = std::max(worst, std::abs(told - expected));
  };
  EXPECT_TRUE(reference.Append(prompt, Reference::Wanted::kEveryRow, compare).ok());
  return worst;
}

class FormatFromOutside : public ::testing::TestWithParam<uint32_t> {
  void SetUp() override { AddPebbles(); }
};
INSTANTIATE_TEST_SUITE_P(Pebble, FormatFromOutside, ::testing::Values(kSlowId, kFastId));

TEST_P(FormatFromOutside, RunsLikeTheReference) {
  Result<Model> model = Load(PebbleModel(GetParam()));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_STREQ(NameOf(model->layers[0].q.dtype), GetParam() == kFastId ? "PEBBLE_FAST" : "PEBBLE");
  num_products = 0;
  testing::Machine machine(*model, {64, 64});
  const testing::Case c = Prompt(40);
  machine.Submit(c);
  machine.Finish();
  ASSERT_EQ(c.heard->prompt.size(), 39u) << c.heard->record.detail;
  EXPECT_LT(FromReference(*model, c), 2e-3);
  EXPECT_EQ(num_products > 0, GetParam() == kFastId);
}

TEST_P(FormatFromOutside, HasTheSameBitsInABatch) {
  Result<Model> model = Load(PebbleModel(GetParam()));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const testing::Case alone = Prompt(21), together = Prompt(21);
  testing::Machine first(*model, {64, 64}), second(*model, {64, 64});
  first.Submit(alone);
  first.Finish();
  second.Submit(Prompt(33));
  second.Submit(together);
  second.Submit(Prompt(7));
  second.Finish();
  EXPECT_EQ(alone.heard->rows.size(), 6u);
  EXPECT_EQ(alone.heard->rows, together.heard->rows);
}

TEST_P(FormatFromOutside, ValuesThatAreNoNumbersAreRefused) {
  std::string bytes = PebbleModel(GetParam());
  Result<Model> good = Load(bytes);
  ASSERT_TRUE(good.ok()) << good.status().message();
  // The third row of layer 1's output projection, found by its content.
  const MatView row = good->layers[1].attn_out.Rows(2, 1);
  const std::string_view content(reinterpret_cast<const char*>(row.data), kBytes);
  const size_t at = bytes.find(content);
  ASSERT_NE(at, std::string::npos);
  const float bad = std::nanf("");
  std::memcpy(&bytes[at], &bad, sizeof(bad));
  Result<Model> model = Load(bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  CpuOptions options;
  options.isa = BestIsa();
  options.kv_blocks = {8};
  const Status status = MakeCpuBackend(*model, options).status();
  EXPECT_THAT(status.message(), HasSubstr("blk.1.attn_output.weight"));
  EXPECT_THAT(status.message(), HasSubstr("NaN"));
}

TEST(FormatFromOutsideUnknown, IsRefusedByItsNumber) {
  const Result<Model> model = Load(PebbleModel(1002));
  EXPECT_THAT(model.status().message(), HasSubstr("tensor type 1002 is not supported"));
}

}  // namespace
}  // namespace hearth
