// SPDX-License-Identifier: Apache-2.0
#include "backend/immediate_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <random>

namespace hearth {
namespace {

constexpr int kVocab = 50;

// Answers with rows that the test wrote.
class RowsBackend : public ImmediateBackend {
 public:
  std::string_view name() const override { return "rows"; }
  KvLayout kv_layout() const override { return {}; }
  int vocab_size() const override { return kVocab; }
  std::vector<float> rows;
  int num_copies = 0, copies_before_compute = -1;
  bool has_memory = true;

 protected:
  Status Copy(const BlockCopy& copy) override {
    ++num_copies;
    return copy.group == 9 ? Error(Code::kIo, "no such group") : Status();
  }
  Status Compute(const StepPlan&, std::span<float> logits) override {
    copies_before_compute = num_copies;
    if (!has_memory) throw std::bad_alloc();
    std::ranges::copy(rows, logits.begin());
    return Status();
  }
};

StepPlan PlanOf(int num_rows) {
  StepPlan plan;
  plan.tokens = {1};
  plan.slices = {{.count = 1, .num_rows = num_rows}};
  plan.num_rows = num_rows;
  return plan;
}

TEST(ImmediateBackend, GivesOfEveryRowWhatWasAskedFor) {
  std::mt19937 random(7);
  RowsBackend backend;
  StepPlan plan = PlanOf(40);
  for (int i = 0; i < 40 * kVocab; ++i) {
    backend.rows.push_back(static_cast<float>(random() % 12));  // equal ones are common
  }
  for (int row = 0; row < 40; ++row) {
    const auto kind = static_cast<RowAsk::Kind>(row % 3);
    plan.asks.push_back({kind, kind == RowAsk::Kind::kTop ? 1 + row % kVocab : 0});
  }
  auto rows = RunStep(backend, plan);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 40u);
  for (size_t row = 0; row < 40; ++row) {
    const std::span<const float> all = std::span(backend.rows).subspan(row * kVocab, kVocab);
    std::vector<TokenLogit> sorted;
    for (int i = 0; i < kVocab; ++i) sorted.push_back({i, all[static_cast<size_t>(i)]});
    std::ranges::stable_sort(sorted, [](auto& a, auto& b) { return a.logit > b.logit; });
    const RowResult& found = (*rows)[row];
    const RowAsk& ask = plan.asks[row];
    if (ask.kind == RowAsk::Kind::kLogits) {
      EXPECT_TRUE(std::ranges::equal(found.logits, all));
    } else if (ask.kind == RowAsk::Kind::kToken) {
      EXPECT_TRUE(found.logits.empty());
      EXPECT_EQ(found.token, sorted[0].token);
    } else {
      ASSERT_EQ(found.top.size(), static_cast<size_t>(ask.top));
      for (size_t i = 0; i < found.top.size(); ++i) {
        EXPECT_EQ(found.top[i].token, sorted[i].token) << row;
        EXPECT_EQ(found.top[i].logit, sorted[i].logit);
      }
    }
  }
}

TEST(ImmediateBackend, ARowThatIsNoNumberSaysSoInEveryForm) {
  RowsBackend backend;
  backend.rows.assign(3 * kVocab, std::numeric_limits<float>::quiet_NaN());
  StepPlan plan = PlanOf(3);
  plan.asks = {{}, {RowAsk::Kind::kTop, 2}, {RowAsk::Kind::kToken}};
  auto rows = RunStep(backend, plan);
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(std::isnan((*rows)[0].logits[0]));
  EXPECT_TRUE(std::isnan((*rows)[1].top[0].logit));
  EXPECT_EQ((*rows)[2].token, -1);
}

TEST(ImmediateBackend, CopiesComeFirstAndMayBeAlone) {
  RowsBackend backend;
  backend.rows.assign(kVocab, 0.0f);
  StepPlan plan = PlanOf(1);
  plan.copies = {{}, {}};
  ASSERT_TRUE(RunStep(backend, plan).ok());
  EXPECT_EQ(backend.copies_before_compute, 2);
  StepPlan copies;
  copies.copies = {{}};
  auto rows = RunStep(backend, copies);
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->empty());
  EXPECT_EQ(backend.num_copies, 3);
  copies.copies = {{.group = 9}};
  EXPECT_EQ(RunStep(backend, copies).status().code(), Code::kIo);
}

TEST(ImmediateBackend, AStepWithoutMemoryFailsAndTheNextOneRuns) {
  RowsBackend backend;
  backend.rows.assign(kVocab, 0.0f);
  const StepPlan plan = PlanOf(1);
  backend.has_memory = false;
  EXPECT_EQ(RunStep(backend, plan).status().code(), Code::kExhausted);
  backend.has_memory = true;
  EXPECT_TRUE(RunStep(backend, plan).ok());
}

// Ten layers; says in which order they were computed, and may fail in one.
class LayersBackend : public RowsBackend {
 public:
  std::vector<std::pair<const StepPlan*, int>> done;
  int fails_at = -1;
  bool runs_out = false;

 protected:
  Result<bool> ComputeLayers(const StepPlan& plan, const WantsBreak& wants_break) override {
    for (int& layer = next_[&plan]; layer < 10;) {
      if (layer == fails_at && runs_out) throw std::bad_alloc();
      if (layer == fails_at) return Error(Code::kIo, "a layer failed");
      done.emplace_back(&plan, layer++);
      if (layer < 10 && wants_break()) return false;
    }
    next_.erase(&plan);
    return true;
  }

 private:
  std::map<const StepPlan*, int> next_;
};

TEST(ImmediateBackend, AStepThatWasLeftGoesOnAfterAnother) {
  LayersBackend backend;
  backend.rows.assign(kVocab, 0.0f);
  const StepPlan first = PlanOf(1), second = PlanOf(1);
  int asked = 0, num_breaks = 0;
  const auto wants_break = [&] { return ++asked == 4; };
  auto rows = RunStep(backend, first, wants_break, [&] {
    ++num_breaks;
    EXPECT_TRUE(RunStep(backend, second).ok());
  });
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 1u);
  EXPECT_EQ(num_breaks, 1);
  ASSERT_EQ(backend.done.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(backend.done[i].first, i >= 4 && i < 14 ? &second : &first) << i;
  }
}

// What fails in a break is the break's, and what fails after one is the step's own.
TEST(ImmediateBackend, FailuresAreOfTheStepTheyHappenIn) {
  for (const bool runs_out : {false, true}) {
    LayersBackend backend;
    backend.rows.assign(kVocab, 0.0f);
    backend.runs_out = runs_out;
    const Code code = runs_out ? Code::kExhausted : Code::kIo;
    const StepPlan first = PlanOf(1), second = PlanOf(1);
    int asked = 0;
    const auto once = [&] { return ++asked == 1; };
    auto rows = RunStep(backend, first, once, [&] {
      backend.fails_at = 3;
      EXPECT_EQ(RunStep(backend, second).status().code(), code);
      backend.fails_at = -1;
    });
    EXPECT_TRUE(rows.ok());
    asked = 0;
    rows = RunStep(backend, second, once, [&] { backend.fails_at = 5; });
    EXPECT_EQ(rows.status().code(), code);
    backend.fails_at = -1;
    EXPECT_TRUE(RunStep(backend, PlanOf(1)).ok()) << "nothing is left behind";
  }
}

TEST(ImmediateBackend, RefusesAsksThatMakeNoSense) {
  RowsBackend backend;
  backend.rows.assign(kVocab, 0.0f);
  StepPlan plan = PlanOf(1);
  plan.asks = {{}, {}};
  EXPECT_EQ(RunStep(backend, plan).status().code(), Code::kInvalid);
  for (const int top : {0, -1, kVocab + 1}) {
    plan.asks = {{RowAsk::Kind::kTop, top}};
    EXPECT_EQ(RunStep(backend, plan).status().code(), Code::kInvalid) << top;
  }
  plan.asks = {{RowAsk::Kind::kTop, kVocab}};
  EXPECT_TRUE(RunStep(backend, plan).ok()) << "a refused plan leaves nothing behind";
}

}  // namespace
}  // namespace hearth
