// SPDX-License-Identifier: Apache-2.0
// Every level with every number of memory nodes and threads, under whatever quota this process has:
// matrix_test.py starts it under several. CI (HEARTH_QUICK) runs one sequence of each.
#include <gtest/gtest.h>

#include <cstdlib>

#include "bitwise_runs.h"
#include "testing/data.h"

namespace hearth {
namespace {

TEST(Matrix, LevelsNodesAndThreads) {
  const int batch = std::getenv("HEARTH_QUICK") == nullptr ? 8 : 1;
  int cases = 0;
  for (const char* name : {"tiny-oss-mxfp4", "tiny-oss-f32"}) {
    testing::BitwiseRuns runs(testing::DataPath("golden/" + std::string(name) + ".gguf"), 8, 40,
                              20261120, KvCode::kInt16);
    for (const Isa isa : SupportedIsas()) {
      for (const int nodes : {1, 2, 3}) {
        for (const int threads : {1, 2, 3, 5}) {
          cases += runs.RunBatch(isa, threads, nodes, batch);
          ASSERT_FALSE(HasFailure()) << name << ", " << NameOf(isa) << ", " << nodes << " nodes, "
                                     << threads << " threads";
        }
      }
    }
  }
  std::printf("matrix: %d cases on %zu levels, 0 differing\n", cases, SupportedIsas().size());
}

}  // namespace
}  // namespace hearth
