// SPDX-License-Identifier: Apache-2.0
// What a cache below memory does, for Prometheus and for people.
#pragma once
#include "base/json.h"
#include "engine/snapshot.h"
namespace hearth {

class MetricFamilies;

// Nothing when there is no tier.
void AddTier(const EngineSnapshot& snapshot, MetricFamilies& out);
// Null when there is no tier.
Json TierAsJson(const EngineSnapshot& snapshot);

}  // namespace hearth
