// SPDX-License-Identifier: Apache-2.0
#include "model/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/costs.h"
#include "testing/data.h"

namespace hearth {
namespace {

using ::hearth::testing::DataPath;
using ::hearth::testing::ReadArray;
using ::testing::HasSubstr;

Result<Model> LoadShared(const std::string& path) {
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> file, WeightFile::Open(path));
  return LoadModel(std::move(file));
}

std::vector<double> Logits(const Model& model, std::span<const Token> tokens, size_t piece) {
  Reference reference(model);
  std::vector<double> all;
  while (!tokens.empty()) {
    const auto now = tokens.first(std::min(piece, tokens.size()));
    const Status status = reference.Append(now, Reference::Wanted::kEveryRow,
                                           [&](int, std::span<const double> logits) {
                                             all.insert(all.end(), logits.begin(), logits.end());
                                           });
    EXPECT_TRUE(status.ok()) << status.message();
    tokens = tokens.subspan(now.size());
  }
  return all;
}

double Nmse(std::span<const double> got, std::span<const double> want) {
  EXPECT_EQ(got.size(), want.size());
  double error = 0, power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    power += want[i] * want[i];
  }
  return error / power;
}

class TinyOss : public ::testing::TestWithParam<const char*> {
 protected:
  std::string path() const {
    return DataPath("golden/tiny-oss-" + std::string(GetParam()) + ".gguf");
  }
};

TEST_P(TinyOss, MatchesTheGoldenLogits) {
  HEARTH_SKIP_WITHOUT(path());
  Result<Model> model = LoadShared(path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_TRUE(CheckWeights(*model).ok());
  const auto tokens = ReadArray<Token>(DataPath("golden/tiny-oss-tokens.i32"));
  ASSERT_EQ(tokens.size(), 600u);
  EXPECT_LE(Nmse(Logits(*model, tokens, 600),
                 ReadArray<double>(DataPath("golden/tiny-oss-logits-ref.f64"))),
            1e-20);
  model->spec.rope.yarn_truncate = true;
  EXPECT_LE(Nmse(Logits(*model, tokens, 600),
                 ReadArray<double>(DataPath("golden/tiny-oss-logits-floorceil.f64"))),
            1e-20);
}

// Also across the window's edge (16) and past it.
TEST_P(TinyOss, PiecesGiveTheSameBits) {
  HEARTH_SKIP_WITHOUT(path());
  Result<Model> model = LoadShared(path());
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto tokens = ReadArray<Token>(DataPath("golden/tiny-oss-tokens.i32"));
  tokens.resize(50);
  const std::vector<double> whole = Logits(*model, tokens, 50);
  for (const size_t piece : {1, 3, 16, 49})
    EXPECT_EQ(Logits(*model, tokens, piece), whole) << piece;
}

INSTANTIATE_TEST_SUITE_P(Formats, TinyOss, ::testing::Values("f32", "mxfp4"));

TEST(Reference, LastRowIsTheLastOfAll) {
  const std::string path = DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  Result<Model> model = LoadShared(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<Token> tokens = {1, 9038, 2501, 263};
  const std::vector<double> all = Logits(*model, tokens, 4);
  Reference reference(*model);
  int calls = 0;
  ASSERT_TRUE(reference
                  .Append(tokens, Reference::Wanted::kLastRow,
                          [&](int position, std::span<const double> logits) {
                            ++calls;
                            EXPECT_EQ(position, 3);
                            EXPECT_TRUE(
                                std::equal(logits.begin(), logits.end(), all.end() - 32000));
                          })
                  .ok());
  EXPECT_EQ(calls, 1);
}

TEST(Reference, RefusesWhatDoesNotFitAndAppendsNothing) {
  const std::string path = DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  Result<Model> model = LoadShared(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  Reference reference(*model);
  const auto emit = [](int, std::span<const double>) { FAIL() << "nothing must be computed"; };
  for (const Token bad : {-1, 32000, INT32_MAX}) {
    const std::vector<Token> tokens = {1, bad};
    const Status status = reference.Append(tokens, Reference::Wanted::kEveryRow, emit);
    EXPECT_THAT(status.message(), HasSubstr("outside the vocabulary of 32000"));
  }
  const std::vector<Token> too_long(257, 1);
  EXPECT_THAT(reference.Append(too_long, Reference::Wanted::kEveryRow, emit).message(),
              HasSubstr("257 tokens after 0 do not fit the model's context length of 256"));
  EXPECT_EQ(reference.num_computed(), 0);
}

TEST(Reference, ShowsNamedPoints) {
  const std::string path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  Result<Model> model = LoadShared(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  Reference reference(*model);
  std::map<std::string, size_t> widths;  // of the first layer, or outside the layers
  reference.set_observer([&](std::string_view point, int layer, std::span<const double> values) {
    if (layer <= 0) widths[std::string(point)] = values.size() / 5;
  });
  const std::vector<Token> tokens = {1, 2, 3, 4, 5};
  ASSERT_TRUE(
      reference.Append(tokens, Reference::Wanted::kEveryRow, [](int, std::span<const double>) {})
          .ok());
  const std::map<std::string, size_t> expected = {
      {"embd", 64},          {"attn_norm", 64},   {"Qcur", 256},       {"Kcur", 128},
      {"Vcur", 128},         {"kqv_out", 256},    {"attn_out", 64},    {"ffn_norm", 64},
      {"ffn_moe_logits", 8}, {"ffn_moe_topk", 4}, {"ffn_moe_out", 64}, {"l_out", 64},
      {"result_norm", 64}};
  EXPECT_EQ(widths, expected);
}

}  // namespace
}  // namespace hearth
