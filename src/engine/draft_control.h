// SPDX-License-Identifier: Apache-2.0
// How many draft tokens are worth checking: what a wider step costs here, how often drafts of this
// sequence held, and a credit that bounds what failed ones may take from it.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "engine/draft.h"
namespace hearth {

// How long steps of streams take by how many tokens are in them, learnt from those made. Thread:
// one.
class WidthTimes {
 public:
  static constexpr int kMaxWidth = 128;
  void Observe(int width, int64_t us);
  // Between measured widths a line; beyond them the slope goes on. Never less than a narrower step
  // takes. 0 before anything was observed, or when all of it was long ago.
  double Us(int width) const;
  // Some steps of this width were seen, one of them among the last `within`.
  bool IsKnown(int width, int64_t within) const;

 private:
  struct Mean {
    double us = 0;
    int64_t count = 0, seen_at = 0;
  };
  std::array<Mean, kMaxWidth + 1> means_{};
  int64_t num_observed_ = 0;
};

// How often drafts held, longer matches apart from shorter ones; older drafts fade.
class DraftOdds {
 public:
  static constexpr int kNumClasses = 5;  // the last: the whole context agreed
  static int ClassOf(int match_length);
  void Add(int match_length, int drafted, int accepted);
  // That a draft's next token is right, given that those before it were; `prior` fills in where
  // little was seen.
  double Of(int match_length, const DraftOdds* prior) const;

 private:
  struct Count {
    double tried = 0, held = 0;
  };
  std::array<Count, kNumClasses> counts_{};
};

// What one sequence remembers of its drafts. Times are in tokens: what plain decoding takes for
// one.
struct DraftHistory {
  DraftOdds odds;
  double credit = 0.5;  // what drafts may lose before they must have won something
  int since_probe = 0;  // steps since a draft was tried against the odds
};

// Thread: engine only. Pure: the same calls give the same answers.
class DraftControl {
 public:
  // The step that is being planned: streams alone, then with the drafts chosen so far.
  struct Step {
    int streams = 0, width = 0;
    double tokens = 0;    // that it is expected to say
    double plain_us = 0;  // without drafts
    double limit_us = 0;  // no longer than this
  };
  // `streams` sequences, one token each. With no drafts at all now and then: what a plain step
  // takes must stay known.
  Step Begin(int streams, double itl_target_us) const;
  bool may_draft(const Step& step) const { return step.plain_us > 0; }
  // How many tokens of a draft with such a match, at most `most`, make the step say more per second
  // and can be afforded; 0 for none. Counts them into `step`.
  int Choose(Step& step, DraftHistory& history, int match_length, int most) const;

  // After a step of streams that took `us`; `width` tokens with the drafts in it.
  void Observe(int width, int64_t us) { times_.Observe(width, us); }
  // One sequence's part of such a step. Without a draft: 0, 0, 0.
  void Book(DraftHistory& history, int streams, int match_length, int drafted, int accepted);
  const WidthTimes& times() const { return times_; }

 private:
  // What `count` more tokens cost a step of `streams`, in tokens of plain decoding.
  double Cost(int streams, int width, int count) const;

  WidthTimes times_;
  DraftOdds odds_;  // of everybody
};

}  // namespace hearth
