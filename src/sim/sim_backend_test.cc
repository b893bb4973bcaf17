// SPDX-License-Identifier: Apache-2.0
// The simulated backend notices everything it was made to notice.
#include "sim/sim_backend.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hearth {
namespace {

class World : public SimWorld {
 public:
  Course OnStep(const StepPlan&) override { return {8, status}; }
  void Pass(int64_t) override {}
  bool GoesBad(SeqId seq, int position) override { return seq == bad && position == bad_position; }
  uint64_t SaltOf(SeqId seq) const override { return seq == SeqId{9} ? 9 : 1; }
  Status status;
  SeqId bad{};
  int bad_position = -1;
};

constexpr int kVocab = 5;
KvLayout Layout() {
  return {.groups = {{.window = 0, .block_bytes = 1, .num_blocks = 8},
                     {.window = 10, .block_bytes = 1, .num_blocks = 8}}};
}

std::vector<BlockId> Table(std::initializer_list<int> ids) {
  std::vector<BlockId> out;
  for (const int id : ids) out.push_back(static_cast<BlockId>(id));
  return out;
}

struct Rig {
  World world;
  SimBackend backend{Layout(), kVocab, 77, world};
  std::vector<float> logits = std::vector<float>(kVocab);

  Status Run(SeqId seq, std::vector<Token> tokens, int num_computed,
             const std::vector<BlockId>& full, const std::vector<BlockId>& window) {
    StepPlan plan;
    SeqSlice slice;
    slice.seq = seq;
    slice.count = static_cast<int>(tokens.size());
    slice.num_computed = num_computed;
    const std::vector<BlockTable> tables{full, window};
    slice.tables = tables;
    slice.num_rows = 1;
    plan.num_rows = 1;
    plan.tokens = std::move(tokens);
    plan.slices.push_back(slice);
    auto rows = RunStep(backend, plan);
    if (rows.ok()) logits.assign((*rows)[0].logits.begin(), (*rows)[0].logits.end());
    return rows.status();
  }
};

std::vector<Token> Words(int count) {
  std::vector<Token> out;
  for (int i = 0; i < count; ++i) out.push_back(i * 7 % kVocab);
  return out;
}

std::vector<float> Alone(const SimModel& model, const std::vector<Token>& tokens) {
  LoneSim lone(model);
  for (const Token token : tokens) lone.Append(token);
  std::vector<float> logits(kVocab);
  lone.Logits(logits);
  return logits;
}

TEST(SimBackend, SaysThroughTablesWhatTheModelSaysAlone) {
  const std::vector<Token> words = Words(40);
  for (const int cut : {1, 15, 16, 17, 39}) {
    Rig rig;
    const auto full = Table({3, 0, 5}), window = Table({1, 7, 2});
    ASSERT_TRUE(rig.Run(SeqId{1}, {words.begin(), words.begin() + cut}, 0, full, window).ok());
    ASSERT_TRUE(rig.Run(SeqId{1}, {words.begin() + cut, words.end()}, cut, full, window).ok());
    EXPECT_EQ(rig.logits, Alone(rig.backend.model(), words)) << "cut at " << cut;
    EXPECT_EQ(rig.backend.failure(), "");
  }
}

TEST(SimBackend, OtherTokensSayOtherThings) {
  std::vector<Token> words = Words(40);
  const SimModel model = Rig().backend.model();
  const std::vector<float> said = Alone(model, words);
  std::swap(words[0], words[1]);
  EXPECT_NE(Alone(model, words), said) << "the order of tokens matters";
}

TEST(SimBackend, NoticesWrongBlocks) {
  const auto full = Table({3, 0}), window = Table({1, 7});
  const std::vector<Token> words = Words(20);
  const auto after = [&](auto&& change) {
    Rig rig;
    EXPECT_TRUE(rig.Run(SeqId{1}, words, 0, full, window).ok());
    change(rig);
    return rig.backend.failure();
  };
  EXPECT_EQ(after([&](Rig& rig) { EXPECT_TRUE(rig.Run(SeqId{1}, {1}, 20, full, window).ok()); }),
            "");
  const auto fails = [&](Rig& rig, SeqId seq, const std::vector<BlockId>& f,
                         const std::vector<BlockId>& w) {
    static_cast<void>(rig.Run(seq, {1}, 20, f, w));
  };
  EXPECT_NE(after([&](Rig& rig) { fails(rig, SeqId{1}, Table({0, 3}), window); }), "") << "swapped";
  EXPECT_NE(after([&](Rig& rig) { fails(rig, SeqId{1}, full, Table({-1, 4})); }), "")
      << "unwritten";
  EXPECT_NE(after([&](Rig& rig) { fails(rig, SeqId{1}, full, Table({1, -1})); }), "") << "missing";
  EXPECT_NE(after([&](Rig& rig) { fails(rig, SeqId{1}, Table({3}), window); }), "") << "too short";
  EXPECT_NE(after([&](Rig& rig) { fails(rig, SeqId{1}, Table({3, 8}), window); }), "")
      << "no block";
  EXPECT_NE(after([&](Rig& rig) { fails(rig, SeqId{9}, full, window); }), "") << "another salt";
  EXPECT_NE(after([&](Rig& rig) {
              EXPECT_TRUE(rig.Run(SeqId{2}, Words(3), 0, Table({0}), Table({2})).ok());
              fails(rig, SeqId{1}, full, window);
            }),
            "")
      << "taken by somebody else";
}

TEST(SimBackend, BadNumbersStayWithThemselves) {
  Rig rig;
  rig.world.bad = SeqId{1};
  rig.world.bad_position = 4;
  ASSERT_TRUE(rig.Run(SeqId{1}, Words(3), 0, Table({0}), Table({0})).ok());
  EXPECT_FALSE(std::isnan(rig.logits[0]));
  ASSERT_TRUE(rig.Run(SeqId{1}, Words(3), 3, Table({0}), Table({0})).ok());
  EXPECT_TRUE(std::isnan(rig.logits[0]));
  ASSERT_TRUE(rig.Run(SeqId{2}, Words(3), 0, Table({1}), Table({1})).ok());
  EXPECT_FALSE(std::isnan(rig.logits[0]));
  ASSERT_TRUE(rig.Run(SeqId{2}, {1}, 6, Table({0}), Table({0})).ok());
  EXPECT_TRUE(std::isnan(rig.logits[0])) << "whoever reads them has them";
  rig.world.status = Error(Code::kIo, "gone");
  EXPECT_FALSE(rig.Run(SeqId{2}, {1}, 3, Table({1}), Table({1})).ok());
  rig.world.status = Status();
  ASSERT_TRUE(rig.Run(SeqId{2}, {1}, 4, Table({1}), Table({1})).ok());
  EXPECT_TRUE(std::isnan(rig.logits[0])) << "a failed step leaves no numbers";
}

}  // namespace
}  // namespace hearth
