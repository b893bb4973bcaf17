// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of prompts and pooled states on the real backend: what the reference says, and
// the same bits alone and in any batch, chunks, cache and preemption; for every family.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>

#include "bits_rig.h"
#include "model/reference.h"
#include "testing/data.h"
#include "testing/random_weights.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"

namespace hearth {
namespace {

using ::hearth::testing::DataPath;
using testing::Case;
using testing::GgufBuilder;
using testing::LoadedModel;
using testing::Machine;
using testing::World;

// A file of the family whose weights are random, about as large as a model's are.
std::string RandomModel(const std::string& arch, uint32_t seed) {
  GgufBuilder b = testing::TinyModel(arch);
  testing::SetNumber(b, arch + ".context_length", 512);
  return testing::RandomWeights(b, seed);
}

class ReadingTest {
 public:
  ReadingTest(const std::string& path, uint32_t seed) : random_(seed), model_(LoadedModel(path)) {}
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void Define(int count, int max_prompt) {
    Machine alone(model_, {64, 64, 2048, 1});
    for (int i = 0; i < count; ++i) {
      Case c;
      if (!cases_.empty() && Pick(2) == 0) {
        c.request.prompt = cases_[static_cast<size_t>(Pick(i))].request.prompt;
      }
      const auto length = static_cast<size_t>(1 + Pick(max_prompt));
      if (c.request.prompt.size() > length) c.request.prompt.resize(length);
      while (c.request.prompt.size() < length) {
        c.request.prompt.push_back(Pick(model_.spec.vocab_size));
      }
      c.request.pools = i % 3 == 0;
      c.request.prompt_only = i % 3 != 1;
      c.request.max_tokens = 1 + Pick(8);
      c.request.sampling.num_prompt_logprobs = i % 6 == 0 ? -1 : Pick(21);
      c.request.sampling.seed = random_();
      alone.Submit(c);
      alone.Finish();
      EXPECT_EQ(c.heard->record.finish, Finish::kLength) << c.heard->record.detail;
      EXPECT_EQ(c.heard->record.num_cached, 0);
      cases_.push_back(c);
    }
  }

  // How far the furthest answer is from the reference's: log-probabilities, and 1 - the cosine.
  struct Distance {
    double logprob = 0, direction = 0;
  };
  Distance FromReference(int count) const {
    Distance worst;
    for (int i = 0; i < count; ++i) {
      const Case& c = cases_[static_cast<size_t>(i)];
      Reference reference(model_);
      std::vector<double> sum;
      reference.set_observer([&](std::string_view point, int, std::span<const double> values) {
        if (point != "result_norm") return;
        const auto d = static_cast<size_t>(model_.spec.d_model);
        sum.assign(d, 0.0);
        for (size_t j = 0; j < values.size(); ++j) sum[j % d] += values[j];
      });
      const std::vector<Token>& prompt = c.request.prompt;
      const Status status = reference.Append(
          prompt, Reference::Wanted::kEveryRow, [&](int position, std::span<const double> logits) {
            const auto next = static_cast<size_t>(position) + 1;
            if (c.heard->prompt.empty() || next >= prompt.size()) return;
            double total = 0;
            for (const double logit : logits) total += std::exp(logit);
            const Logprobs& told = c.heard->prompt[next - 1];
            EXPECT_EQ(told.chosen.token, prompt[next]);
            const auto compare = [&](const TokenLogprob& one) {
              const double expected = logits[static_cast<size_t>(one.token)] - std::log(total);
              worst.logprob =
                  std::max(worst.logprob, std::abs(static_cast<double>(one.logprob) - expected));
            };
            compare(told.chosen);
            for (const TokenLogprob& one : told.top) compare(one);
          });
      EXPECT_TRUE(status.ok()) << status.message();
      if (!c.request.pools) continue;
      EXPECT_EQ(c.heard->embedding.size(), sum.size());
      double dot = 0, squares = 0;
      for (size_t j = 0; j < sum.size(); ++j) {
        dot += sum[j] * static_cast<double>(c.heard->embedding[j]);
        squares += sum[j] * sum[j];
      }
      worst.direction = std::max(worst.direction, 1 - dot / std::sqrt(squares));
    }
    return worst;
  }

  void Compare(int count, const World& world) {
    Machine machine(model_, world);
    std::vector<std::pair<const Case*, Case>> runs;
    for (int i = 0; i < count; ++i) {
      const Case& expected = cases_[static_cast<size_t>(Pick(static_cast<int>(cases_.size())))];
      Case c;
      c.request = expected.request;
      const bool is_plain = Pick(4) == 0;  // a neighbour that fills the cache and asks nothing
      if (is_plain) {
        c.request.pools = c.request.prompt_only = false;
        c.request.sampling.num_prompt_logprobs = -1;
      }
      c.request.priority = static_cast<Priority>(Pick(kNumPriorities));
      machine.Submit(c);
      if (!is_plain) runs.emplace_back(&expected, c);
      for (int steps = Pick(3); steps > 0; --steps) machine.Step();
    }
    machine.Finish();
    for (const auto& [expected, run] : runs) ExpectSame(*expected->heard, *run.heard);
    EXPECT_EQ(machine.core().kv().counts(0).held, 0);
  }
  int num_compared() const { return num_compared_; }
  int num_preempted() const { return num_preempted_; }

 private:
  void ExpectSame(const testing::Heard& a, const testing::Heard& b) {
    EXPECT_EQ(b.record.finish, Finish::kLength) << b.record.detail;
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.embedding, b.embedding);
    ASSERT_EQ(a.prompt.size(), b.prompt.size());
    for (size_t i = 0; i < a.prompt.size(); ++i) {
      EXPECT_EQ(a.prompt[i].chosen.logprob, b.prompt[i].chosen.logprob);
      ASSERT_EQ(a.prompt[i].top.size(), b.prompt[i].top.size());
      for (size_t j = 0; j < a.prompt[i].top.size(); ++j) {
        EXPECT_EQ(a.prompt[i].top[j].token, b.prompt[i].top[j].token);
        EXPECT_EQ(a.prompt[i].top[j].logprob, b.prompt[i].top[j].logprob);
      }
    }
    ++num_compared_;
    num_preempted_ += b.record.num_preempted > 0 ? 1 : 0;
  }

  std::mt19937 random_;
  Model model_;
  std::deque<Case> cases_;
  int num_compared_ = 0, num_preempted_ = 0;
};

void CompareWorlds(ReadingTest& test, int per_world) {
  for (const int step : {2048, 64, 33, 5}) {
    World world;
    world.full_blocks = world.window_blocks = step == 64 ? 24 : 160;
    world.max_step_tokens = step;
    world.max_sequences = 1 + test.Pick(40);
    test.Compare(per_world, world);
  }
  // How a prompt is cut depends on measured times, and with that who has to make room.
  World tight;
  tight.full_blocks = tight.window_blocks = 24;
  tight.max_step_tokens = 64;
  tight.max_sequences = 40;
  for (int i = 0; i < 8 && test.num_preempted() == 0; ++i) test.Compare(per_world, tight);
  EXPECT_GT(test.num_compared(), per_world);
  EXPECT_GT(test.num_preempted(), 0);
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, IsWhatTheReferenceSaysInAnyBatch) {
  const testing::TempDir folder;
  folder.Write("model.gguf", RandomModel(GetParam(), 7));
  ReadingTest test(folder.Path("model.gguf"), 11);
  test.Define(24, 180);
  const ReadingTest::Distance distance = test.FromReference(24);
  std::printf("%s: %.2g from the reference's log-probabilities, %.2g from its direction\n",
              GetParam(), distance.logprob, distance.direction);
  EXPECT_LT(distance.logprob, 0.02);
  EXPECT_LT(distance.direction, 1e-4);
  CompareWorlds(test, 60);
}

INSTANTIATE_TEST_SUITE_P(PromptReading, EveryFamily,
                         ::testing::Values("gpt-oss", "llama", "qwen2", "qwen3", "qwen3moe"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(PromptReading, Stories15M) {
  const std::string path = DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  ReadingTest test(path, 5);
  test.Define(12, 90);
  const ReadingTest::Distance distance = test.FromReference(4);
  std::printf("stories15M: %.2g from the reference's log-probabilities, %.2g from its direction\n",
              distance.logprob, distance.direction);
  EXPECT_LT(distance.logprob, 0.1);
  EXPECT_LT(distance.direction, 1e-4);
  CompareWorlds(test, 24);
}

}  // namespace
}  // namespace hearth
