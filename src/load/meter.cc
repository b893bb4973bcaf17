// SPDX-License-Identifier: Apache-2.0
#include "load/meter.h"

#include <algorithm>

#include "kv/kv_space.h"

namespace hearth {

StepSummary SummaryOf(std::span<const MeteredStep> steps) {
  StepSummary out;
  double sequences = 0;
  for (const MeteredStep& step : steps) {
    ++out.steps;
    out.tokens += step.tokens;
    sequences += step.sequences;
    if (step.own_s < 0) continue;
    out.run_s += step.run_s;
    out.own_s += step.own_s;
  }
  if (out.steps > 0) out.mean_sequences = sequences / static_cast<double>(out.steps);
  return out;
}

Status MeteredBackend::Begin(const StepPlan& plan) {
  MeteredStep step;
  step.start_s = clock_.now_s();
  step.tokens = static_cast<int>(plan.tokens.size());
  step.sequences = static_cast<int>(plan.slices.size());
  bool goes_on = false;
  for (const SeqSlice& slice : plan.slices) {
    if (slice.count > slice.num_rows) {
      step.prompt_tokens += slice.count;
      ++step.prompts;
    }
    goes_on = goes_on || std::find(last_.begin(), last_.end(), slice.seq) != last_.end();
  }
  if (goes_on) step.own_s = step.start_s - last_end_s_;
  last_.clear();
  for (const SeqSlice& slice : plan.slices) last_.push_back(slice.seq);
  steps_->push_back(step);
  began_s_ = clock_.now_s();
  return inside_->Begin(plan);
}

Result<std::span<const RowResult>> MeteredBackend::Finish() {
  Result<std::span<const RowResult>> rows = inside_->Finish();
  last_end_s_ = clock_.now_s();
  steps_->back().run_s = last_end_s_ - began_s_;
  return rows;
}

namespace {

// Sequences of one token after the other, without an engine.
class Decoders {
 public:
  Decoders(Backend& backend, int count)
      : backend_(backend), kv_(backend.kv_layout(), KvPolicy()), holdings_(count) {
    for (int i = 0; i < count; ++i) holdings_[i].domain.salt = i;  // nobody shares anything
  }
  ~Decoders() {
    for (KvHolding& holding : holdings_) kv_.Release(holding);
  }

  // Every sequence gets `count` more tokens, `at_once` sequences a step.
  Status Advance(int count, int at_once) {
    const auto num = static_cast<int>(holdings_.size());
    for (int first = 0; first < num; first += at_once) {
      StepPlan plan;
      for (int i = first; i < std::min(num, first + at_once); ++i) {
        if (!kv_.Reserve(holdings_[i], num_computed_, count)) {
          return Error(Code::kExhausted, "the KV cache is too small for %d sequences of %d tokens",
                       num, num_computed_ + count);
        }
        SeqSlice slice;
        slice.seq = static_cast<SeqId>(i + 1);
        slice.first = static_cast<int>(plan.tokens.size());
        slice.count = count;
        slice.num_computed = num_computed_;
        slice.tables = holdings_[i].tables;
        slice.first_row = plan.num_rows++;
        slice.num_rows = 1;
        for (int k = 0; k < count; ++k) plan.tokens.push_back(TokenAt(i, num_computed_ + k));
        plan.slices.push_back(slice);
      }
      HEARTH_TRY(RunStep(backend_, plan).status());
    }
    num_computed_ += count;
    return Status();
  }

 private:
  Token TokenAt(int sequence, int position) const {
    const uint64_t mixed = (static_cast<uint64_t>(sequence) * 7919 + position) * 2654435761u;
    return static_cast<Token>((mixed >> 8) % static_cast<uint64_t>(backend_.vocab_size()));
  }
  Backend& backend_;
  KvSpace kv_;
  std::vector<KvHolding> holdings_;
  int num_computed_ = 0;
};

}  // namespace

Result<double> BackendRate(Backend& backend, int sequences, int context, int steps) {
  Decoders decoders(backend, sequences);
  for (int left = context; left > 0;) {
    const int count = std::min(left, 256);
    HEARTH_TRY(decoders.Advance(count, std::max(1, 512 / count)));
    left -= count;
  }
  HEARTH_TRY(decoders.Advance(1, sequences));  // warm
  const LoadClock clock;
  for (int i = 0; i < steps; ++i) HEARTH_TRY(decoders.Advance(1, sequences));
  return static_cast<double>(sequences) * steps / clock.now_s();
}

}  // namespace hearth
