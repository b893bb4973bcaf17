// SPDX-License-Identifier: Apache-2.0
// Every level with every number of memory nodes and threads, under whatever quota this process has:
// matrix_test.py starts it under several. CI (HEARTH_QUICK) runs one sequence of each.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "bitwise_runs.h"
#include "format_models.h"
#include "testing/data.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// Every combination once for each of `batch` sequences; returns how many were compared.
int RunAll(const std::string& path, int batch, Numerics numerics = Numerics::kExact) {
  testing::BitwiseRuns runs(path, 8, 40, 20261120, KvCode::kInt16, numerics);
  int cases = 0;
  for (const Isa isa : SupportedIsas()) {
    for (const int nodes : {1, 2, 3}) {
      for (const int threads : {1, 2, 3, 5}) {
        cases += runs.RunBatch(isa, threads, nodes, batch);
        EXPECT_FALSE(::testing::Test::HasFailure())
            << path << ", " << NameOf(isa) << ", " << nodes << " nodes, " << threads << " threads";
        if (::testing::Test::HasFailure()) return cases;
      }
    }
  }
  return cases;
}

// A format from each file of kernels, dense and with experts in turn, and gpt-oss's own shape.
TEST(Matrix, LevelsNodesAndThreads) {
  const bool is_quick = std::getenv("HEARTH_QUICK") != nullptr;
  const testing::TempDir dir;
  int cases = RunAll(testing::DataPath("golden/tiny-oss-mxfp4.gguf"), 1);
  const char* arch = "llama";
  for (const DType dtype :
       {DType::kQ8_0, DType::kMxfp4, DType::kQ4_0, DType::kQ4_K, DType::kBf16}) {
    const std::string path = dir.Path(std::string(NameOf(dtype)) + ".gguf");
    std::ofstream(path, std::ios::binary) << testing::FormatModel::Build(arch, dtype, 7);
    arch = std::string_view(arch) == "llama" ? "qwen3moe" : "llama";
    if (!HasFailure()) cases += RunAll(path, is_quick ? 1 : 3);
    if (!HasFailure()) cases += RunAll(path, is_quick ? 1 : 3, Numerics::kFast);
  }
  ASSERT_FALSE(HasFailure());
  std::printf("matrix: %d cases on %zu levels, 0 differing\n", cases, SupportedIsas().size());
}

}  // namespace
}  // namespace hearth
