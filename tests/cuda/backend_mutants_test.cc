// SPDX-License-Identifier: Apache-2.0
// Planted bugs in the CUDA backend (patches under tests/mutants/patches/gpu): on the mock driver
// each must be noticed.
#include <gtest/gtest.h>

#include "graph_cases.h"
#include "testing/mutants.h"

namespace hearth::cuda {
namespace {

using testing::MutantFate;
using testing::RunMutant;

struct Bug {
  int number;
  const char* what;
};
constexpr Bug kBugs[] = {
    {210, "results are read before the event is waited for"},
    {211, "the plan of a step is copied after its launches"},
    {212, "a block table is read one entry too far"},
    {213, "every layer reads the tables of the first group"},
    {214, "copies of blocks share their host memory"},
    {215, "the event is recorded before the rows are copied"},
    {216, "the last layer's result is not added"},
    {217, "experts multiply all rows"},
    {218, "every piece of rows is the first"},
    {219, "every piece of tokens attends from the first place"},
    {220, "a refused launch is forgotten"},
    {221, "a window's table counts from its first entry"},
    {236, "experts read rows that were not gathered yet"},
    {237, "every piece's largest logits go to the first place"},
    {238, "every row is asked for what the first is"},
    {239, "stale graph parameters: a graph reads the plan where it lay before it grew"},
    {240, "stale graph parameters: a graph has the spans of a shorter context"},
    {241, "stale graph parameters: a graph looks for as many logits as another step"},
    {242, "a graph is not launched again"},
    {258, "every piece of decoded tokens leaves the first one's rows"},
    {259, "experts share rows of their own results"},
    {260, "results in slots are taken in the order of choice"},
};

// One step after a refused launch must tell it.
void CheckRefusedLaunch() {
  const MockSettings settings("launch=7");
  const Model model = testing::LoadedModel(TinyOss());
  auto gpu = OpenMocked(model, {});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  Rng rng(11);
  const int lengths[] = {3};
  std::vector<Running> all = Sequences(model, lengths, 16, rng);
  const StepPlan plan = NextStep(all, 3, 1);
  EXPECT_FALSE(RunStep(**gpu, plan).ok());
}

std::string Checks() {
  const int lengths[] = {37, 3};
  CompareModel(TinyOss(), lengths, {19}, {});
  CompareFamily("llama");
  CompareSupers("qwen3moe", kMixedRest);
  CompareRowsInPieces();
  CompareAsks();
  CompareAttentionInPieces(5, 44, 4);
  CompareAttentionInPieces(2, 1098, 1);
  CompareQuantisedPieces();
  CompareExchangedBlocks();
  CheckRefusedLaunch();
  CompareGraphs();
  CompareGraphsOfSpans();
  CompareGraphsOfAsks();
  return ::testing::Test::HasFailure() ? "the backend differs" : "";
}

TEST(CudaBackendMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(RunMutant(0, Checks), MutantFate::kUnnoticed);
}

TEST(CudaBackendMutants, EachIsNoticed) {
  for (const Bug& bug : kBugs) {
    EXPECT_NE(RunMutant(bug.number, Checks), MutantFate::kUnnoticed)
        << bug.number << ": " << bug.what;
  }
}

}  // namespace
}  // namespace hearth::cuda
