// SPDX-License-Identifier: Apache-2.0
// Planted bugs. In the kernels' source (patches under tests/mutants/patches/cuda) the source
// emulator must notice each; in the text that nvcc wrote, where inline assembly lives, the PTX
// interpreter must.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "machine.h"
#include "proof/checks.h"
#include "ptx_run.h"
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
    {120, "V is waited for one group too few"},
    {121, "no barrier before V's memory is used again"},
    {122, "the window sees one position more"},
    {123, "the sink is lost"},
    {124, "spans merge from the last to the first"},
    {125, "a span's last position is left out"},
    {126, "weights of a lane add up from the end"},
    {127, "no barrier between weights and their sums"},
    {128, "a pair of keys shares the first one's scale"},
    {129, "a merge rounds twice"},
    {130, "the table is read one position too far"},
    {131, "rope turns the wrong way"},
    {132, "no barrier between rope and the store of K"},
    {133, "K gets Q's norm"},
    {140, "the high half forgets that the low one is signed"},
    {141, "columns behind the last are not zeroed"},
    {142, "no barrier between norm and quantising"},
    {143, "a strip with a NaN gets its NaN as a number's scale"},
    {144, "the residual has the wrong stride"},
    {150, "a row takes its neighbour's shift"},
    {151, "columns of the two factors disagree"},
    {152, "sums are not cleared between rounds"},
    {153, "spilled blocks are lost"},
    {154, "no barrier before integer sums are read"},
    {156, "the high sums run on into the next item"},
    {157, "rows are stored in the order of tiles"},
    {160, "ties go to the higher expert"},
    {161, "a NaN is the best expert"},
    {170, "exp rounds twice"},
    {171, "sixteen lanes join in another order"},
    {222, "a row takes its neighbour's scales"},
    {223, "the fourth pair of scales is the third"},
    {224, "minima are added"},
    {225, "both halves of a block take the first one's scale"},
    {226, "fifth bits of the wrong quad"},
    {227, "high sums run on into the next superblock"},
    {228, "no barrier before a superblock's sums are read"},
    {229, "third bits of the neighbour line"},
    {230, "the upper half of IQ4_XS's table is not used"},
    {231, "a minimum goes to the wrong half"},
    {232, "equal logits go to the higher token"},
    {233, "the largest is taken twice"},
    {234, "a row that is no number has a largest logit"},
    {235, "superblocks share a scale over the usual strip"},
    {243, "the sum of weights is not shrunk with its results"},
    {244, "flash attention sees one position too many"},
    {245, "splits are not divided by the sum of their weights"},
    {246, "no barrier before warps are merged"},
    {247, "every sequence reads the first one's blocks"},
    {248, "dimensions of values come in the order of products"},
    {249, "a counter of blocks is not zero again"},
    {250, "the token's own key has the scale that lay in the cache"},
    {251, "the token's own key is read where it is not yet"},
    {252, "the first block that is done merges spans"},
    {253, "K goes where V belongs"},
    {254, "a thread counts its own choices before itself"},
    {255, "a choice takes a row of its own where rows are shared"},
    {256, "what experts gave is added from x on"},
    {257, "every panel of the router has the first one's bias"},
};

// One schedule sees some missing barriers, the other way round others.
std::string SourceChecks() {
  for (const Schedule schedule : {Schedule::kForward, Schedule::kReverse}) {
    const std::unique_ptr<Machine> machine = SourceEmulator(schedule);
    for (const Check& check : kChecks) {
      const std::string wrong = check.run(*machine, CaseGrid::kTiny);
      if (!wrong.empty()) return std::string(check.name) + ": " + wrong;
    }
  }
  return "";
}

TEST(CudaMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(RunMutant(0, SourceChecks), MutantFate::kUnnoticed);
}

TEST(CudaMutants, EachInTheSourceIsNoticedByTheEmulator) {
  for (const Bug& bug : kBugs) {
    EXPECT_NE(RunMutant(bug.number, SourceChecks), MutantFate::kUnnoticed)
        << bug.number << ": " << bug.what;
  }
}

// --- in the text ---------------------------------------------------------------------------------

std::string Ptx() {
  std::ifstream file(std::string(HEARTH_PTX_DIR) + "/sm_80.ptx");
  return {std::istreambuf_iterator<char>(file), {}};
}

// The `index`-th match of `what` becomes `instead`; empty when there are fewer.
std::string Replaced(const std::string& text, const std::string& what, const std::string& instead,
                     int index) {
  const std::regex pattern(what);
  auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
  for (int i = 0; i < index && match != std::sregex_iterator(); ++i) ++match;
  if (match == std::sregex_iterator()) return "";
  return text.substr(0, static_cast<size_t>(match->position())) + match->format(instead) +
         text.substr(static_cast<size_t>(match->position() + match->length()));
}

std::string PtxChecks(const std::string& text) {
  PtxMachine machine("mutant", text);
  for (const Check& check : kChecks) {
    const std::string wrong = check.run(machine, CaseGrid::kTiny);
    if (!wrong.empty()) return std::string(check.name) + ": " + wrong;
  }
  return "";
}

bool IsNoticed(const std::string& text) {
  return RunMutant(0, [&] { return PtxChecks(text); }) != MutantFate::kUnnoticed;
}

struct TextBug {
  const char *what, *instead, *why;
};
constexpr TextBug kTextBugs[] = {
    {"wait_group 1;", "wait_group 2;", "V is waited for one group too few"},
    {"cp[.]async[.]wait_group 1;", "", "V is not waited for"},
    {"(s8[.]s32 [^ ]*, [{][^,]*),([^,]*),([^,]*),", "$1,$3,$2,",
     "registers of a swapped in a product"},
    {"(s8[.]s32 [^ ]*, [^ ]*, [{])([^,]*),([^,}]*)", "$1$3,$2",
     "registers of b swapped in a product"},
    {"(prmt[.]b32 [^,]*), ([^,]*), ([^,]*),", "$1, $3, $2,", "operands of prmt swapped"},
    {"(no_allocate[.]v2[.]u32 [{])([^,]*),([^,}]*)", "$1$3,$2", "two words of weights swapped"},
    {"\\tld[.]s8", "\tld.u8", "a byte loses its sign"},
    {"cvt[.]f32[.]f16", "cvt.rn.f32.u16", "a scale is taken for an integer"},
    {"div[.]rn[.]f32", "mul.rn.f32", "a product for a quotient"},
    {"sqrt[.]rn[.]f32", "rcp.rn.f32", "an inverse for a root"},
    {"atom[.]acq_rel[.]gpu", "atom.relaxed.gpu", "blocks that are done order nothing"},
    {"atom[.]shared[.]add[.]u32 ([^,]*), ([^,]*), ([^;]*);", "st.shared.u32 $2, $3;",
     "a sum is stored where it was to be added"},
};

TEST(CudaMutants, EachInTheTextIsNoticedByTheInterpreter) {
  const std::string text = Ptx();
  if (text.empty()) GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
  EXPECT_FALSE(IsNoticed(text));
  for (const TextBug& bug : kTextBugs) {
    const std::string mutated = Replaced(text, bug.what, bug.instead, 0);
    ASSERT_NE(mutated, "") << "not in the text: " << bug.why;
    ASSERT_NE(mutated, text) << bug.why;
    EXPECT_TRUE(IsNoticed(mutated)) << bug.why;
  }
}

// --- barriers ------------------------------------------------------------------------------------

// Which checks run a kernel.
using ChecksByKernel = std::map<std::string, std::vector<const Check*>>;
ChecksByKernel FindChecks(const std::string& text) {
  ChecksByKernel checks;
  for (const Check& check : kChecks) {
    PtxMachine machine("barriers", text);
    EXPECT_EQ(check.run(machine, CaseGrid::kTiny), "") << check.name;
    for (const auto& [kernel, counters] : machine.counters()) checks[kernel].push_back(&check);
  }
  return checks;
}

struct PlacedBarrier {
  std::string kernel;
  size_t at, length;  // in the text
};
std::vector<PlacedBarrier> FindBarriers(const std::string& text) {
  const std::regex pattern("[.]entry (\\w+)\\(|bar[.]sync[^;]*;");
  std::vector<PlacedBarrier> barriers;
  std::string kernel;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    if ((*match)[1].matched) {
      kernel = (*match)[1];
    } else {
      barriers.push_back(
          {kernel, static_cast<size_t>(match->position()), static_cast<size_t>(match->length())});
    }
  }
  return barriers;
}

// Every barrier of every kernel, taken out alone; the checks that run its kernel must notice.
TEST(CudaMutants, EveryBarrierIsNeeded) {
  if (std::getenv("HEARTH_CUDA_FULL") == nullptr) GTEST_SKIP() << "only in slow.cuda.mutants";
  const std::string text = Ptx();
  if (text.empty()) GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
  const ChecksByKernel checks = FindChecks(text);
  const std::vector<PlacedBarrier> barriers = FindBarriers(text);
  std::map<std::string, int> numbers;
  int unnoticed = 0;
  for (const PlacedBarrier& barrier : barriers) {
    std::string mutated = text;
    mutated.replace(barrier.at, barrier.length, "");
    const auto run = [&]() -> std::string {
      PtxMachine machine("mutant", mutated);
      for (const Check* check : checks.at(barrier.kernel)) {
        const std::string wrong = check->run(machine, CaseGrid::kTiny);
        if (!wrong.empty()) return wrong;
      }
      return "";
    };
    const int number = numbers[barrier.kernel]++;
    if (RunMutant(0, run) != MutantFate::kUnnoticed) continue;
    ++unnoticed;
    std::printf("  nothing notices that barrier %d of %s is missing\n", number,
                barrier.kernel.c_str());
  }
  std::printf("  %zu barriers, %d could go\n", barriers.size(), unnoticed);
  EXPECT_GT(barriers.size(), 100u);
  EXPECT_EQ(unnoticed, 0);
}

}  // namespace
}  // namespace hearth::cuda
