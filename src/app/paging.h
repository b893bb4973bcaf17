// SPDX-License-Identifier: Apache-2.0
// Models that do not fit in memory: their experts come from disk, when somebody allowed that.
#pragma once
#include <cstdint>
#include <string>

#include "app/open_backend.h"
#include "backend/paging_counts.h"
#include "base/result.h"
#include "model/model.h"
namespace hearth {

struct FittedPlan {
  BackendPlan backend;
  int64_t kv_bytes = 0;  // for K and V when experts come from disk, else 0: the caller's to choose
};

// The plan of a backend in `room` bytes, of which K and V take `kv_bytes`, or a part of what is
// left with 0. When the model does not fit: with paging allowed, a plan in which experts get the
// rest; else kExhausted that says how fast it would be. A model without experts that does not fit
// is left to the caller.
Result<FittedPlan> PlanWithin(const Model& model, const BackendOptions& options,
                              const PagingFlags& flags, int64_t kv_bytes, uint64_t room);

// Tokens per second of one user that the disk allows, when experts are used evenly.
double PagedRate(const BackendPlan& plan, int active_experts, int frames, double bytes_per_s);

// Counts as a sentence.
std::string Told(const PagingCounts& counts);
// The sentence on stderr, if experts came from disk at all.
void TellPaging(const PagingMeter& meter);

}  // namespace hearth
