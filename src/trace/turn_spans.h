// SPDX-License-Identifier: Apache-2.0
// A request's life as spans: one for the whole, and below it read, queue, tiers, prefill, decode
// and write, which follow each other without gaps. Pure.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "server/turns/exchange.h"
#include "trace/span.h"
namespace hearth {

struct TurnMoment {
  int64_t engine_us = 0;  // the end of the request by the engine's clock
  int64_t unix_ns = 0;    // and by the calendar's
};

// `next_id` gives new ids that are not 0. Holds no text of anybody, like the outcome. With several
// choices the parts are of the one that took longest.
std::vector<TraceSpan> SpansOf(const TurnOutcome& outcome, const TurnMoment& end,
                               const TraceParentField& parent,
                               const std::function<SpanId()>& next_id);

}  // namespace hearth
