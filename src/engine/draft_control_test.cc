// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace hearth {
namespace {

TEST(WidthTimes, LearnsAndInterpolates) {
  WidthTimes times;
  EXPECT_EQ(times.Us(1), 0);
  for (int i = 0; i < 50; ++i) {
    times.Observe(1, 1000);
    times.Observe(5, 1800);
  }
  EXPECT_NEAR(times.Us(1), 1000, 1);
  EXPECT_NEAR(times.Us(3), 1400, 1);
  EXPECT_NEAR(times.Us(7), 2200, 1);
  times.Observe(3, 500);  // noise: no wider step is shorter than a narrower one
  EXPECT_NEAR(times.Us(3), 1000, 1);
}

TEST(WidthTimes, AnUnluckyWidthIsForgotten) {
  WidthTimes times;
  for (int i = 0; i < 8; ++i) times.Observe(1, 1000);
  times.Observe(4, 100'000);
  EXPECT_GT(times.Us(4), 90'000);
  for (int i = 0; i < 300; ++i) times.Observe(1 + i % 2, 1000 + 100 * (i % 2));
  EXPECT_NEAR(times.Us(4), 1300, 20);
  times.Observe(4, 1400);
  EXPECT_NEAR(times.Us(4), 1400, 20);
}

TEST(WidthTimes, AnInterruptedStepDoesNotDecide) {
  WidthTimes times;
  for (int i = 0; i < 50; ++i) times.Observe(1, 1000);
  times.Observe(1, 1'000'000);
  EXPECT_LT(times.Us(1), 1060);
  for (int i = 0; i < 60; ++i) times.Observe(1, 2000);
  EXPECT_GT(times.Us(1), 1900);  // but if it is so, it is learnt
}

// One sequence on a machine whose steps take `us(width)`; a draft token holds with the share `odds`
// and one is to be had in every step with a match of `length`. Returns plain time over drafting
// time for the same number of tokens.
struct Played {
  double speed = 0;
  int64_t drafted = 0, accepted = 0;
  int widest = 0;
};
Played Play(const std::function<double(int)>& us, double odds, int length, int tokens,
            double noise = 0, int streams = 1, DraftControl* shared = nullptr) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> share(0, 1);
  DraftControl own;
  DraftControl& control = shared == nullptr ? own : *shared;
  std::vector<DraftHistory> histories(static_cast<size_t>(streams));
  Played played;
  double took = 0, said = 0;
  while (said < tokens) {
    DraftControl::Step step = control.Begin(streams, 1e9);
    std::vector<int> drafted(static_cast<size_t>(streams), 0), accepted = drafted;
    for (size_t i = 0; i < histories.size() && control.may_draft(step); ++i) {
      drafted[i] = control.Choose(step, histories[i], length, kMaxDraft);
      while (accepted[i] < drafted[i] && share(random) < odds) ++accepted[i];
    }
    const double real = us(step.width) * (1 + noise * (2 * share(random) - 1));
    took += us(step.width);
    control.Observe(step.width, static_cast<int64_t>(real));
    for (size_t i = 0; i < histories.size(); ++i) {
      control.Book(histories[i], streams, length, drafted[i], accepted[i]);
      said += 1 + accepted[i];
      played.drafted += drafted[i];
      played.accepted += accepted[i];
      played.widest = std::max(played.widest, drafted[i]);
    }
  }
  played.speed = said / streams * us(streams) / took;
  return played;
}

double Dense(int width) { return 10'000 + 500 * width; }
// What gpt-oss-20b's experts do: 32, of which every token reads 4.
double Experts(int width) { return 30'000 + 72'000 * 8 * (1 - std::pow(28.0 / 32, width)); }
double Dear(int width) { return 10'000.0 * width; }

TEST(DraftControl, FastWhereDraftsHold) {
  EXPECT_GT(Play(Dense, 0.95, 12, 400).speed, 4);
  EXPECT_GT(Play(Dense, 0.6, 4, 400).speed, 1.5);
  EXPECT_GT(Play(Experts, 0.95, 12, 400).speed, 1.5);
  EXPECT_GT(Play(Dense, 0.95, 12, 2000, 0.3).speed, 4);
}

TEST(DraftControl, CostsNextToNothingWhereTheyFail) {
  for (const auto& us : {Dense, Experts, Dear}) {
    for (const double odds : {0.0, 0.02, 0.1}) {
      for (const int length : {2, 4, 12}) {
        for (const double noise : {0.0, 0.2}) {
          const Played played = Play(us, odds, length, 100, noise);
          EXPECT_GT(played.speed, 0.97) << odds << " " << length << " " << noise;
          EXPECT_GT(played.drafted, 0);  // it tried
        }
      }
    }
  }
}

TEST(DraftControl, NeverMuchBelowPlainWhateverTheOdds) {
  for (int i = 0; i <= 20; ++i) {
    for (const auto& us : {Dense, Experts, Dear}) {
      EXPECT_GT(Play(us, 0.05 * i, 4, 300, 0.2).speed, 0.97) << 0.05 * i;
    }
  }
}

TEST(DraftControl, StaysOffWhereATokenMoreCostsAStepMore) {
  const Played played = Play(Dear, 0.8, 12, 1000);
  EXPECT_LT(played.drafted, 60);
  EXPECT_GT(played.speed, 0.98);
}

TEST(DraftControl, AWideBatchSwitchesItOff) {
  // Beyond 16 tokens products decide: twice the tokens, twice the time.
  const auto us = [](int width) { return 10'000.0 * std::max(1.0, width / 16.0); };
  EXPECT_GT(Play(us, 0.6, 4, 2000, 0, 4).speed, 1.2);
  const Played wide = Play(us, 0.6, 4, 20'000, 0, 32);
  EXPECT_GT(wide.speed, 0.97);
  EXPECT_LT(static_cast<double>(wide.drafted), 0.05 * 20'000);
}

TEST(DraftControl, ANewSequenceDoesNotSufferFromOthers) {
  DraftControl control;
  Play(Dense, 0.0, 4, 1000, 0, 1, &control);
  EXPECT_GT(Play(Dense, 0.95, 4, 400, 0, 1, &control).speed, 2);
}

TEST(DraftControl, TextThatTurnsRepetitiveIsNoticed) {
  DraftControl control;
  DraftHistory history;
  int accepted = 0;
  for (int i = 0; i < 900; ++i) {
    DraftControl::Step step = control.Begin(1, 1e9);
    const int drafted = control.may_draft(step) ? control.Choose(step, history, 4, kMaxDraft) : 0;
    control.Observe(step.width, static_cast<int64_t>(Dear(step.width) / 4 + 7500));
    const int held = i < 600 ? 0 : drafted;  // first nothing holds, then everything
    control.Book(history, 1, 4, drafted, held);
    accepted += held;
  }
  EXPECT_GT(accepted, 300);
}

TEST(DraftControl, NoStepBeyondTheBound) {
  DraftControl control;
  DraftHistory history;
  history.credit = 100;
  for (int i = 0; i < 8; ++i) {
    control.Observe(1, 10'000);
    control.Observe(9, 18'000);
  }
  DraftControl::Step step = control.Begin(1, 14'000);
  EXPECT_LE(control.Choose(step, history, 32, kMaxDraft), 4);
  step = control.Begin(1, 100'000);
  EXPECT_GT(control.Choose(step, history, 32, kMaxDraft), 4);
}

}  // namespace
}  // namespace hearth
