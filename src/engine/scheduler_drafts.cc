// SPDX-License-Identifier: Apache-2.0
// The scheduler's part in speculation: what is left of a step of streams goes to drafts.
#include <algorithm>

#include "base/check.h"
#include "engine/scheduler.h"

namespace hearth {

// Last of all, and only beside streams: nobody is preempted, waits or is cut short for a draft.
void Scheduler::PlanDrafts() {
  draft_step_ = {};
  if (!options_.speculates || step_->shape.prefill_tokens > 0 || step_->planned.empty()) return;
  const auto streams = static_cast<int>(step_->planned.size());
  draft_step_ = draft_control_.Begin(streams, static_cast<double>(options_.itl_target_us));
  if (!draft_control_.may_draft(draft_step_) && options_.fixed_draft == 0) return;
  for (Sequence* s : step_->planned) {
    const int left = options_.max_step_tokens - draft_step_.width;
    if (left <= 0) return;
    if (s->request.speculates) PlanDraft(*s, std::min(left, kMaxDraft));
  }
}

void Scheduler::PlanDraft(Sequence& s, int most) {
  // A draft of k may make it say k + 1.
  const int unsaid = s.max_total - static_cast<int>(s.tokens.size());
  most = std::min({most, unsaid - 1, s.reader_room - 1});
  if (most <= 0) return;
  s.suffixes.Extend(s.tokens);
  // Somebody went on from here before: a retry, another choice. Else what it said itself.
  kv_.Continue(s.kv, s.tokens, most, s.draft);
  SuffixMatch match{s.draft.empty() ? 0 : kContextMatch, 0};
  if (s.draft.empty()) {
    match = s.suffixes.Find(s.tokens);
    if (match.length == 0) return;
    CopyDraft(s.tokens, match, most, s.draft);
  }
  // Nothing follows a token that ends the sequence.
  const auto last = std::find_if(s.draft.begin(), s.draft.end(), [&](Token token) {
    return EndsSequence(s.request.sampling, token);
  });
  most = static_cast<int>(last - s.draft.begin());
  most = std::min(most, kv_.Room(s.kv, s.num_computed, 1 + most) - 1);
  int count = std::min(most, options_.fixed_draft);
  if (options_.fixed_draft == 0) {
    count = draft_control_.Choose(draft_step_, s.drafts, match.length, most);
  } else {
    draft_step_.width += count;
  }
  s.draft.resize(static_cast<size_t>(count));
  s.draft_match = match.length;
  if (count == 0) return;
  const bool reserved = kv_.Reserve(s.kv, s.num_computed, 1 + count);
  HEARTH_CHECK(reserved);
}

// How many tokens of its draft, if it had one in this step, were not what it said.
int Scheduler::BookDraft(Sequence& s, const SliceOutcome& outcome) {
  const auto drafted = static_cast<int>(s.draft.size());
  s.draft.clear();
  // What it says last, it says without having computed it.
  const int said = outcome.error.empty() ? static_cast<int>(outcome.tokens.size()) : 0;
  const int accepted = drafted > 0 ? std::max(0, said - 1) : 0;
  HEARTH_CHECK(accepted <= drafted);
  if (draft_step_.streams > 0) {
    draft_control_.Book(s.drafts, draft_step_.streams, s.draft_match, drafted, accepted);
  }
  s.record.num_drafted += drafted;
  s.record.num_accepted += accepted;
  totals_.drafted_tokens += drafted;
  totals_.accepted_tokens += accepted;
  totals_.decode_tokens -= drafted - accepted;
  return drafted - accepted;
}

}  // namespace hearth
