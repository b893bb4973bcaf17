// SPDX-License-Identifier: Apache-2.0
// The promise of bits for every weight format: small models, dense and with experts, whose matrices
// are all in that format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "bitwise_runs.h"
#include "format_models.h"
#include "testing/rounds.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

class Formats : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, Formats, ::testing::ValuesIn(testing::kFastFormats),
                         [](const auto& dtype) { return std::string(NameOf(dtype.param)); });

TEST_P(Formats, SameBitsEverywhere) {
  const testing::TempDir dir;
  for (const char* arch : {"llama", "qwen3moe"}) {
    const std::string path = dir.path() + "/" + arch + "-" + NameOf(GetParam()) + ".gguf";
    std::ofstream(path, std::ios::binary) << testing::FormatModel::Build(arch, GetParam(), 7);
    for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
      testing::CompareBits(path, 20, 24, QuickRounds(120), KvCode::kInt16, numerics);
      if (HasFailure()) return;
    }
  }
}

std::string NoteFor(DType dtype) {
  const testing::TempDir dir;
  const std::string path = dir.Path("model.gguf");
  std::ofstream(path, std::ios::binary) << testing::FormatModel::Build("llama", dtype, 7);
  Result<BackendPlan> plan = CpuBackends().Plan(testing::LoadedModel(path), {});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? plan->warning : "";
}

TEST(SlowFormats, AreNamedAndFastOnesAreNot) {
  EXPECT_THAT(NoteFor(DType::kIq2Xxs), ::testing::HasSubstr("IQ2_XXS"));
  EXPECT_EQ(NoteFor(DType::kQ4_K), "");
  EXPECT_EQ(NoteFor(DType::kBf16), "");
}

}  // namespace
}  // namespace hearth
