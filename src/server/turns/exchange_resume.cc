// SPDX-License-Identifier: Apache-2.0
// The part of an exchange that makes its stream one that can be resumed: tokens as events, each
// on its own, and what is written down of them.
#include <utility>

#include "server/turns/exchange.h"

namespace hearth {

// Token by token, whatever came together: which events there are must not depend on how busy the
// writers were, or no client could name the one it has.
std::string Exchange::TellToken(int index, Token token, const Logprobs* logprobs) {
  std::vector<Delta> deltas;
  choices_[static_cast<size_t>(index)].turn.Feed(token, logprobs, deltas);
  const int64_t dropped = event_ids_.num_dropped();
  std::string bytes = TellDeltas(index, deltas);
  if (event_ids_.num_dropped() > dropped && has_said_) ++num_recomputed_;
  return bytes;
}

std::string Exchange::TellDeltas(int index, const std::vector<Delta>& deltas) {
  constexpr size_t kLogprobBytes = 100;  // of one token with its bytes, as text
  std::string bytes;
  for (const Delta& delta : deltas) {
    bytes += event_ids_.NumberChosen(index, writer_->Add(index, delta));
    kept_bytes_ += delta.text.size();
    for (const AnswerLogprob& one : delta.logprobs) {
      kept_bytes_ += (1 + one.top.size()) * kLogprobBytes;
    }
  }
  return bytes;
}

// What was said before the client came back: the engine goes on after it.
std::string Exchange::TellSaid() {
  std::string bytes;
  num_cached_ = form_.seen.num_cached;
  if (!form_.said.empty()) {
    bytes = event_ids_.NumberChosen(0, TellPrompt(0));
    event_ids_.set_cached(num_cached_);
    for (const Token token : form_.said) bytes += TellToken(0, token, nullptr);
  }
  has_said_ = true;
  return bytes;
}

void Exchange::Note(const TokenEvent& event) {
  if (choices_.size() > 1) return;
  if (num_cached_ < 0) num_cached_ = event.num_cached;
  event_ids_.set_cached(num_cached_);
  if (form_.notes != nullptr) form_.notes->Add(event.index, event.token, num_cached_);
}

void Exchange::ChargeKept() {
  if (form_.account == nullptr) return;
  const bool keeps = !form_.streams || writer_->keeps_stream();
  const size_t noted = form_.notes != nullptr ? form_.notes->num_bytes() : 0;
  if (keeps || noted > 0) form_.account->Set(Held::kKept, (keeps ? kept_bytes_ : 0) + noted);
}

}  // namespace hearth
