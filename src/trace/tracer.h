// SPDX-License-Identifier: Apache-2.0
// Makes spans of requests that end, of as many as are asked for.
#pragma once
#include "engine/clock.h"
#include "server/turns/exchange.h"
#include "trace/exporter.h"
namespace hearth {

// A client's own decision goes before the share: what its header says is sampled or not.
// Thread: any; never blocks.
class Tracer : public TurnObserver {
 public:
  // `share` of the requests without a header are sampled, by their trace's id. `next` is told
  // afterwards; may be null. All outlive this.
  Tracer(TraceExporter& exporter, double share, const Clock& clock, TurnObserver* next);
  void OnEnd(const TurnOutcome& outcome) override;

 private:
  void Trace(const TurnOutcome& outcome);
  TraceExporter& exporter_;
  const double share_;
  const Clock& clock_;
  TurnObserver* const next_;
};

}  // namespace hearth
