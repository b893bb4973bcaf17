// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "platform/file.h"
#include "quantize/encode.h"
#include "tensor/quant.h"
#include "testing/gguf_builder.h"
#include "testing/temp_dir.h"
#include "weights/gguf_file.h"

namespace hearth {
namespace {

using testing::AsBytes;
using testing::GgufBuilder;
using testing::TempDir;

constexpr int kRows = 300, kCols = 256;

// A model's file with a matrix, a norm and a router of drawn values.
std::string Source() {
  GgufBuilder builder;
  builder.AddString("general.architecture", "llama")
      .Add("general.file_type", GgufType::kU32, uint32_t{1})
      .AddStrings("tokenizer.ggml.tokens", {"a", "bc", ""})
      .Add("split.count", GgufType::kU16, uint16_t{1})
      .Add("split.no", GgufType::kU16, uint16_t{0})
      .Add("split.tensors.count", GgufType::kI32, int32_t{3});
  builder.AddTensor("blk.0.attn_q.weight", {kCols, kRows})
      .AddTensor("blk.0.attn_norm.weight", {kCols})
      .AddTensor("blk.0.ffn_gate_inp.weight", {kCols, 8});
  std::string bytes = builder.Build();
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 0.05f);
  const size_t num_values = static_cast<size_t>(kCols) * (kRows + 1 + 8);
  std::vector<float> values(num_values);
  for (float& value : values) value = normal(random);
  std::memcpy(bytes.data() + bytes.size() - num_values * 4, values.data(), num_values * 4);
  return bytes;
}

struct Attempt {
  TempDir folder;
  std::string path() const { return folder.path() + "/out.gguf"; }
  Result<std::vector<TensorOutcome>> Quantize(const std::string& source, const char* to,
                                              int threads = 2) const {
    HEARTH_ASSIGN(const auto file, OpenGgufBytes(AsBytes(source)));
    HEARTH_ASSIGN(const Target target, ParseTarget(to));
    ThreadPool pool(threads);
    return QuantizeFile(*file, target, path(), pool, {});
  }
};

TEST(Quantize, WritesAFileThatReadsBack) {
  const std::string source = Source();
  const Attempt run;
  auto outcomes = run.Quantize(source, "int4");
  ASSERT_TRUE(outcomes.ok()) << outcomes.status().message();
  ASSERT_EQ(outcomes->size(), 3u);
  EXPECT_EQ(outcomes->at(0).to, DType::kQ4_K);
  EXPECT_EQ(outcomes->at(1).to, DType::kF32);
  EXPECT_EQ(outcomes->at(2).to, DType::kF32);
  auto in = OpenGgufBytes(AsBytes(source));
  auto out = OpenGguf(run.path());
  ASSERT_TRUE(in.ok() && out.ok()) << out.status().message();
  ASSERT_EQ((*out)->tensors().size(), 3u);
  // What stays is the same to the last byte; what changed lies as near as was said.
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const auto before = (*in)->tensors()[i].tensor.bytes, after = (*out)->tensors()[i].tensor.bytes;
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin(), after.end()));
  }
  std::vector<float> want(kRows * kCols), got(want.size());
  DecodeBlocks(DType::kF32, (*in)->tensors()[0].tensor.bytes.data(), kRows * kCols, want.data());
  DecodeBlocks(DType::kQ4_K, (*out)->tensors()[0].tensor.bytes.data(), kRows * kCols, got.data());
  double error = 0, square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(want[i]) - got[i], 2);
    square += std::pow(want[i], 2);
  }
  EXPECT_NEAR(outcomes->at(0).error, std::sqrt(error / square), 1e-9);
  EXPECT_LT(outcomes->at(0).error, 0.08);
}

TEST(Quantize, KeepsTheMetadata) {
  const Attempt run;
  ASSERT_TRUE(run.Quantize(Source(), "int8").ok());
  auto out = OpenGguf(run.path());
  ASSERT_TRUE(out.ok());
  const GgufMetadata& keys = *(*out)->metadata();
  EXPECT_EQ(keys.Find("general.architecture")->String(), "llama");
  EXPECT_EQ(keys.Find("general.file_type")->Unsigned(), 7u);
  EXPECT_EQ(keys.Find("general.quantization_version")->Unsigned(), 2u);
  EXPECT_EQ(keys.Find("tokenizer.ggml.tokens")->Strings()->at(1), "bc");
  EXPECT_EQ(keys.Find("split.count"), nullptr);
}

TEST(Quantize, IsTheSameOnAnyNumberOfThreads) {
  const std::string source = Source();
  const Attempt one, three;
  ASSERT_TRUE(one.Quantize(source, "q5_k", 1).ok());
  ASSERT_TRUE(three.Quantize(source, "q5_k", 3).ok());
  auto first = ReadTextFile(one.path(), 1 << 24), second = ReadTextFile(three.path(), 1 << 24);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(Quantize, InMemoryItIsTheFileByteForByte) {
  const std::string source = Source();
  for (const char* to : {"int8", "int4"}) {
    const Attempt run;
    ASSERT_TRUE(run.Quantize(source, to).ok());
    auto written = OpenGguf(run.path());
    ASSERT_TRUE(written.ok()) << written.status().message();
    auto in = OpenGgufBytes(AsBytes(source));
    ThreadPool pool(2);
    auto loaded = QuantizeToMemory(**in, *ParseTarget(to), pool, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const auto want = (*written)->shards(), found = loaded->file->shards();
    ASSERT_EQ(want.size(), 1u);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(want[0].bytes, found[0].bytes)) << to;
    EXPECT_EQ(loaded->file->tensors()[0].tensor.dtype,
              std::string_view(to) == "int8" ? DType::kQ8_0 : DType::kQ4_K);
    // What was copied goes, and its neighbours stay.
    const std::span<const std::byte> first = loaded->file->tensors()[0].tensor.bytes;
    loaded->file->Release(first, true);
    EXPECT_TRUE(std::ranges::equal((*written)->tensors()[1].tensor.bytes,
                                   loaded->file->tensors()[1].tensor.bytes));
    // Once is enough.
    auto twice = QuantizeToMemory(**written, *ParseTarget("int4"), pool, {});
    EXPECT_EQ(twice.status().code(), Code::kInvalid);
    EXPECT_NE(twice.status().message().find("already"), std::string::npos);
  }
}

TEST(Quantize, RefusesWhatIsNoNumberAndWritesNothing) {
  std::string source = Source();
  const uint32_t nan = 0x7fc00000;
  const size_t num_values = static_cast<size_t>(kCols) * (kRows + 1 + 8);
  std::memcpy(source.data() + source.size() - num_values * 4 + 40, &nan, 4);
  const Attempt run;
  auto outcomes = run.Quantize(source, "int4");
  ASSERT_FALSE(outcomes.ok());
  EXPECT_NE(outcomes.status().message().find("blk.0.attn_q.weight"), std::string::npos);
  EXPECT_FALSE(FileExists(run.path()));
}

TEST(Quantize, RefusesValuesThatTheFormatCannotSay) {
  std::string source = Source();
  const float huge = 1e9f;
  const size_t num_values = static_cast<size_t>(kCols) * (kRows + 1 + 8);
  std::memcpy(source.data() + source.size() - num_values * 4 + 40, &huge, 4);
  const Attempt run;
  EXPECT_FALSE(run.Quantize(source, "f16").ok());
  EXPECT_FALSE(FileExists(run.path()));
}

}  // namespace
}  // namespace hearth
