// SPDX-License-Identifier: Apache-2.0
// A driver that fails, at every place where it can: the step or the backend ends with a reason,
// nothing hangs, nothing leaks (the mock driver ends a process that leaves anything alive), and
// what can go on goes on with the right bits.
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "backend_rig.h"
#include "testing/random_weights.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"

namespace hearth::cuda {
namespace {

using ::testing::HasSubstr;
using testing::LoadedModel;

// A prompt of a few tokens, and one more; with blocks copied out and in on the way.
class Steps {
 public:
  explicit Steps(const Model& model) : layout_(CpuKvLayout(model.spec)) {
    tables_.assign(layout_.groups.size(), {static_cast<BlockId>(3)});
    for (const KvGroupLayout& group : layout_.groups) {
      blocks_.emplace_back(static_cast<size_t>(group.block_bytes));
    }
  }
  StepPlan Prompt() { return Tokens({5, 6, 7}, 0); }
  StepPlan Next() {
    StepPlan plan = Tokens({8}, 3);
    for (int g = 0; g < layout_.num_groups(); ++g) {
      auto& block = blocks_[static_cast<size_t>(g)];
      plan.copies.push_back({g, static_cast<BlockId>(3), block, {}});
      plan.copies.push_back({g, static_cast<BlockId>(9), {}, block});
    }
    return plan;
  }

 private:
  StepPlan Tokens(std::vector<Token> tokens, int num_computed) {
    StepPlan plan;
    SeqSlice slice;
    slice.count = static_cast<int>(tokens.size());
    slice.num_computed = num_computed;
    slice.tables = tables_;
    slice.num_rows = plan.num_rows = 1;
    plan.tokens = std::move(tokens);
    plan.slices.push_back(slice);
    return plan;
  }
  const KvLayout layout_;
  std::vector<BlockTable> tables_;
  std::vector<std::vector<std::byte>> blocks_;
};

Model TinyExperts() {
  const testing::TempDir dir;
  dir.Write("model.gguf", testing::RandomWeights(testing::TinyModel("gpt-oss"), 5));
  return LoadedModel(dir.Path("model.gguf"));
}

class CudaFaults : public ::testing::Test {
 protected:
  CudaFaults() : model_(TinyExperts()), steps_(model_) {
    auto cpu = OpenCpu(model_, {});
    want_ = testing::LogitsOf(**cpu, steps_.Prompt());
    next_ = testing::LogitsOf(**cpu, steps_.Next());
  }
  bool IsRight(Result<std::span<const RowResult>> rows, const std::vector<float>& want) {
    return rows.ok() && rows->size() == 1 && (*rows)[0].logits.size() == want.size() &&
           std::memcmp((*rows)[0].logits.data(), want.data(), want.size() * sizeof(float)) == 0;
  }
  // Both steps with a fault in one of them: it is told, and when everything is done again the
  // answer is right. Returns whether there was a fault.
  bool GoesOn(const char* reason) {
    auto gpu = OpenMocked(model_, {});
    if (!gpu.ok()) {
      EXPECT_THAT(gpu.status().message(), HasSubstr(reason));
      return true;
    }
    const StepPlan prompt = steps_.Prompt(), next = steps_.Next();
    bool has_failed = false;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::pair<const StepPlan*, const std::vector<float>*> steps[] = {{&prompt, &want_},
                                                                             {&next, &next_}};
      bool is_right = true;
      for (const auto& [plan, want] : steps) {
        Result<std::span<const RowResult>> rows = RunStep(**gpu, *plan);
        if (rows.ok()) {
          is_right = is_right && IsRight(rows, *want);
          continue;
        }
        EXPECT_THAT(rows.status().message(), HasSubstr(reason));
        EXPECT_FALSE(has_failed) << "a fault that came twice";
        has_failed = true;
        is_right = false;
        break;
      }
      if (is_right) return has_failed;
      EXPECT_TRUE(has_failed) << "wrong logits";
      if (!has_failed) return false;
    }
    ADD_FAILURE() << "it does not recover";
    return false;
  }
  // The device is lost in one of the steps: from then on every step says so.
  bool Ends() {
    auto gpu = OpenMocked(model_, {});
    if (!gpu.ok()) {
      EXPECT_THAT(gpu.status().message(), HasSubstr("Mock GPU stopped working"));
      return true;
    }
    const StepPlan prompt = steps_.Prompt(), next = steps_.Next();
    for (const StepPlan* plan : {&prompt, &next}) {
      const Status status = RunStep(**gpu, *plan).status();
      if (status.ok()) continue;
      EXPECT_THAT(status.message(), HasSubstr("Mock GPU stopped working"));
      EXPECT_THAT(RunStep(**gpu, prompt).status().message(),
                  HasSubstr("CUDA_ERROR_LAUNCH_FAILED (719)"));
      return true;
    }
    return false;
  }

  const Model model_;
  Steps steps_;
  std::vector<float> want_, next_;
};

// Every place of a fault, until one comes too late to happen; in CI every third of many.
template <class Check>
int EveryPlace(const char* fault, const Check& check) {
  const bool is_slow = std::getenv("HEARTH_CUDA_FULL") != nullptr;
  for (int place = 0; place < 1000; place += is_slow || place < 12 ? 1 : 3) {
    SCOPED_TRACE(std::string(fault) + "=" + std::to_string(place));
    const MockSettings settings(std::string(fault) + "=" + std::to_string(place));
    const bool has_struck = check();
    if (!has_struck || ::testing::Test::HasFailure()) {
      std::printf("  %s: %d places\n", fault, place);
      return place;
    }
  }
  return 1000;
}

TEST_F(CudaFaults, NoMemoryAtAnyAllocation) {
  EXPECT_GT(EveryPlace("alloc", [&] { return GoesOn("out of memory"); }), 8);
}
TEST_F(CudaFaults, AnyLaunchRefused) {
  EXPECT_GT(EveryPlace("launch", [&] { return GoesOn("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"); }), 40);
}
TEST_F(CudaFaults, AnyLaunchLosesTheDevice) {
  EXPECT_GT(EveryPlace("crash", [&] { return Ends(); }), 40);
}
TEST_F(CudaFaults, AnyCopyLosesTheDevice) {
  EXPECT_GT(EveryPlace("copy", [&] { return Ends(); }), 6);
}
TEST_F(CudaFaults, AnyWaitLosesTheDevice) {
  EXPECT_GT(EveryPlace("wait", [&] { return Ends(); }), 3);
}

}  // namespace
}  // namespace hearth::cuda
