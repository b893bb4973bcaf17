// SPDX-License-Identifier: Apache-2.0
#include "trace/tracer.h"

#include <chrono>
#include <new>

#include "base/fresh_random.h"
#include "trace/turn_spans.h"

namespace hearth {
namespace {

// Drawn, not counted: a counter's numbers, mixed or not, tell how many requests everybody made.
SpanId NewSpanId() {
  const uint64_t id = FreshNumber();
  return id != 0 ? id : 1;  // 0 is no id
}

}  // namespace

Tracer::Tracer(TraceExporter& exporter, double share, const Clock& clock, TurnObserver* next)
    : exporter_(exporter), share_(share), clock_(clock), next_(next) {}

void Tracer::OnEnd(const TurnOutcome& outcome) {
  // A request does not fail because its trace found no memory.
  try {
    Trace(outcome);
  } catch (const std::bad_alloc&) {
    exporter_.CountDropped();
  }
  if (next_ != nullptr) next_->OnEnd(outcome);
}

void Tracer::Trace(const TurnOutcome& outcome) {
  std::optional<TraceParentField> parent = ReadTraceParent(outcome.traceparent);
  bool is_sampled = parent && parent->is_sampled;
  if (!parent) {
    parent = TraceParentField{{NewSpanId(), NewSpanId()}, 0, false};
    is_sampled = static_cast<double>(parent->trace[1] >> 11) * 0x1p-53 < share_;
  }
  if (!is_sampled) return;
  const auto unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  exporter_.Offer(SpansOf(outcome, {clock_.now_us(), unix_ns}, *parent, NewSpanId));
}

}  // namespace hearth
