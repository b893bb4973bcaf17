// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in what is reserved for a step must be noticed by the largest steps, which run
// where no memory is left.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "format_models.h"
#include "testing/data.h"
#include "testing/largest_steps.h"
#include "testing/loaded_model.h"
#include "testing/mutants.h"
#include "testing/temp_dir.h"
namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/memory.
constexpr int kFirst = 320;
constexpr const char* kBugs[] = {
    "nothing is reserved",
    "a step of half as many tokens is",
    "a token has one expert",
    "a step that was left has no place",
    "rows of logits have none",
    "what experts read in superblocks has no place",
    "rows that are decoded one by one have no place",
    "there is one worker",
};

Model ModelOf(const char* arch, DType dtype) {
  const testing::TempDir dir;
  const std::string path = dir.Path("model.gguf");
  std::ofstream(path, std::ios::binary) << testing::FormatModel::Build(arch, dtype, 7);
  return testing::LoadedModel(path);
}

// Whose logits are no whole panels, and more than anything else.
Model WideModel() {
  Model model = testing::LoadedModel(testing::DataPath("golden/tiny-oss-mxfp4.gguf"));
  model.spec.vocab_size = model.head.rows = model.embedding.rows = 250;
  return model;
}

std::string AllChecks() {
  for (const Model& model :
       {ModelOf("qwen3moe", DType::kQ4_K), ModelOf("llama", DType::kIq2Xxs), WideModel()}) {
    const std::string wrong = testing::LargestSteps(model).Wrong();
    if (!wrong.empty()) return model.spec.family + ": " + wrong;
  }
  return "";
}

TEST(MemoryMutants, NoneIsFoundWhereNoneIs) {
  if (!testing::kCanLimitMemory) GTEST_SKIP() << "a sanitizer takes address space of its own";
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(MemoryMutants, EachIsNoticed) {
  if (!testing::kCanLimitMemory) GTEST_SKIP() << "a sanitizer takes address space of its own";
  for (int i = 0; i < static_cast<int>(std::size(kBugs)); ++i) {
    EXPECT_EQ(testing::RunMutant(kFirst + i, AllChecks), MutantFate::kReported)
        << "mutant " << kFirst + i << ": " << kBugs[i];
  }
}

}  // namespace
}  // namespace hearth
