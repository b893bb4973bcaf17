// SPDX-License-Identifier: Apache-2.0
// What a request hears with drafts is what it hears without: ids, bits of logits and the way it
// ends, on real models, over text that repeats itself and every way of choosing tokens.
#include <gtest/gtest.h>

#include <random>

#include "bits_rig.h"
#include "testing/data.h"

namespace hearth {
namespace {

using ::hearth::testing::DataPath;
using ::hearth::testing::WorkPath;
using testing::Case;
using testing::LoadedModel;
using testing::Machine;
using testing::World;

struct Seen {
  int compared = 0, cancelled = 0, stopped = 0, preempted = 0, cut_short = 0;
  int64_t drafted = 0, accepted = 0;
};

class SpeculationTest {
 public:
  SpeculationTest(const std::string& path, uint32_t seed, int max_tokens)
      : random_(seed), max_tokens_(max_tokens), model_(LoadedModel(path)) {}

  // `count` requests once without drafts, once with them.
  void Compare(int count, const World& world) {
    std::vector<Request> requests;
    for (int i = 0; i < count; ++i) requests.push_back(MakeRequest());
    World plain = {64 * 16, 64 * 16, 2048, 64, false, 0};
    const std::vector<Case> expected = Run(requests, plain, false);
    const std::vector<Case> got = Run(requests, world, true);
    for (size_t i = 0; i < got.size(); ++i) CompareOne(expected[i], got[i]);
  }
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  const Seen& seen() const { return seen_; }

 private:
  float OneOf(std::initializer_list<float> values) {
    return values.begin()[Pick(static_cast<int>(values.size()))];
  }

  // A phrase said a few times; then most requests favour its tokens, so that it goes on like that
  // for a while and then does not.
  Request MakeRequest() {
    Request request;
    std::vector<Token> phrase(static_cast<size_t>(2 + Pick(6)));
    for (Token& token : phrase) token = Pick(model_.spec.vocab_size);
    for (int i = 1 + Pick(4); i > 0; --i) {
      request.prompt.insert(request.prompt.end(), phrase.begin(), phrase.end());
      if (Pick(4) == 0) request.prompt.push_back(Pick(model_.spec.vocab_size));
    }
    SamplingParams& sampling = request.sampling;
    sampling.temperature = OneOf({0, 0, 0, 0.3f, 0.8f, 1.5f});
    sampling.top_p = OneOf({1, 0.9f});
    sampling.top_k = Pick(3) == 0 ? 1 + Pick(20) : 0;
    sampling.repetition_penalty = OneOf({1, 1, 1, 1.2f});
    sampling.frequency_penalty = OneOf({0, 0, 0, 0.4f});
    sampling.presence_penalty = OneOf({0, 0, 0, 0.3f});
    sampling.dry_multiplier = OneOf({0, 0, 0, 0.8f});
    sampling.xtc_probability = OneOf({0, 0, 0, 0.4f});
    sampling.seed = random_();
    const int favours = Pick(4);
    for (size_t i = 0; i < phrase.size() && favours > 0; ++i) {
      sampling.logit_bias.push_back({phrase[i], 8.0f * static_cast<float>(favours)});
    }
    if (Pick(2) == 0) {
      sampling.stop_tokens = {phrase[static_cast<size_t>(Pick(static_cast<int>(phrase.size())))]};
      sampling.min_tokens = Pick(4) == 0 ? 0 : Pick(20);
    }
    if (Pick(8) == 0) sampling.bad_words = {{phrase[0], phrase[1]}};
    request.max_tokens = 1 + Pick(max_tokens_);
    return request;
  }

  std::vector<Case> Run(const std::vector<Request>& requests, const World& world, bool cancels) {
    Machine machine(model_, world);
    std::vector<Case> cases;
    for (const Request& request : requests) {
      Case c;
      c.request = request;
      if (cancels) {
        c.request.priority = static_cast<Priority>(Pick(kNumPriorities));
        c.request.domain.tenant = static_cast<uint32_t>(Pick(3));
        c.request.speculates = Pick(16) != 0;
      }
      const SeqId id = machine.Submit(c);
      cases.push_back(c);
      // In waves: drafts are tried when there is no prompt to compute.
      if (cases.size() % 8 != 0) continue;
      for (int steps = 2 + Pick(40); steps > 0; --steps) machine.Step();
      if (cancels && Pick(2) == 0) machine.core().Cancel(id);
    }
    machine.Finish();
    for (int group = 0; group < machine.core().kv().layout().num_groups(); ++group) {
      EXPECT_EQ(machine.core().kv().counts(group).held, 0);
    }
    return cases;
  }

  void CompareOne(const Case& expected, const Case& got) {
    std::vector<Token> tokens = expected.heard->tokens;
    std::vector<uint64_t> rows = expected.heard->rows;
    const RequestRecord& record = got.heard->record;
    seen_.drafted += record.num_drafted;
    seen_.accepted += record.num_accepted;
    seen_.preempted += record.num_preempted > 0 ? 1 : 0;
    seen_.stopped += record.finish == Finish::kStop ? 1 : 0;
    // Stopped or full where a draft had more to say.
    seen_.cut_short += record.num_accepted > 0 && record.finish == Finish::kStop ? 1 : 0;
    EXPECT_EQ(expected.heard->record.num_drafted, 0);
    EXPECT_LE(record.num_accepted, record.num_drafted);
    EXPECT_TRUE(got.request.speculates || record.num_drafted == 0);
    if (record.finish == Finish::kCancelled) {
      ++seen_.cancelled;
      ASSERT_LE(got.heard->tokens.size(), tokens.size());
      tokens.resize(got.heard->tokens.size());
      rows.resize(std::min(rows.size(), got.heard->rows.size()));
    } else {
      ++seen_.compared;
      EXPECT_EQ(record.finish, expected.heard->record.finish) << record.detail;
    }
    EXPECT_EQ(got.heard->tokens, tokens);
    EXPECT_EQ(got.heard->rows, rows);
  }

  std::mt19937 random_;
  const int max_tokens_;
  Model model_;
  Seen seen_;
};

// Drafts of every fixed length, and as many as the control likes; pools from ample to tight.
void CompareAll(const char* name, SpeculationTest& test, int total, int per_world, int ample) {
  while (test.seen().compared < total && !::testing::Test::HasFailure()) {
    World world;
    world.full_blocks = world.window_blocks = test.Pick(2) == 0 ? ample : ample / 5;
    const int steps[] = {2048, 64, 24};
    world.max_step_tokens = steps[test.Pick(3)];
    world.max_sequences = 4 + test.Pick(12);
    world.fixed_draft = test.Pick(4) == 0 ? 0 : 1 + test.Pick(kMaxDraft);
    test.Compare(per_world, world);
  }
  const Seen& seen = test.seen();
  std::printf(
      "%s: %d requests as without drafts, %d cancelled, %d preempted, %d stopped (%d after "
      "accepted drafts); %lld draft tokens, %lld accepted\n",
      name, seen.compared, seen.cancelled, seen.preempted, seen.stopped, seen.cut_short,
      static_cast<long long>(seen.drafted), static_cast<long long>(seen.accepted));
  EXPECT_GT(seen.accepted, total);
  EXPECT_GT(seen.drafted, seen.accepted);
}

TEST(Speculation, TinyOss) {
  const std::string path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  SpeculationTest test(path, 1, 50);
  CompareAll("tiny-oss", test, 1800, 150, 100);
  EXPECT_GT(test.seen().drafted - test.seen().accepted, 1800);
  EXPECT_GT(test.seen().cut_short, 50);
  EXPECT_GT(test.seen().preempted, 50);
  EXPECT_GT(test.seen().cancelled, 20);
}

TEST(Speculation, Stories15M) {
  const std::string path = DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  SpeculationTest test(path, 2, 32);
  CompareAll("stories15M", test, 210, 70, 60);
}

TEST(Speculation, SmolLm2) {
  const std::string path = WorkPath("smollm2.gguf");
  HEARTH_SKIP_WITHOUT(path);
  SpeculationTest test(path, 3, 30);
  CompareAll("SmolLM2", test, 12, 12, 24);
}

}  // namespace
}  // namespace hearth
