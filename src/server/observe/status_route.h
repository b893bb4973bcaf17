// SPDX-License-Identifier: Apache-2.0
// What the server is doing right now, as one JSON object: what `hearth top` shows.
#pragma once
#include <unordered_map>

#include "base/json.h"
#include "engine/engine.h"
#include "http/router.h"
#include "server/observe/metrics.h"
#include "server/turns/exchange.h"
#include "server/turns/turn_service.h"
namespace hearth {

// The names that `names` has not are left empty. Holds ids, sizes, times and counts, and nothing
// that anybody wrote. `now_us` is engine time.
Json StatusAsJson(const EngineSnapshot& snapshot, const ServerMetrics& metrics,
                  const std::unordered_map<SeqId, SequenceName>& names, int64_t now_us);

// GET /status. Takes nothing from the engine but its last snapshot, so it answers whatever a step
// is doing; at most all running sequences and the first that wait are in it. It tells of every
// tenant: `auth` is kAdmin unless everybody on the listener is one tenant. All of it outlives the
// router.
void AddStatusRoute(const SnapshotSource& source, const TurnService& service,
                    const ServerMetrics& metrics, Auth auth, Router& router);

}  // namespace hearth
