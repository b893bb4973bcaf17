// SPDX-License-Identifier: Apache-2.0
// Everything that the API's listener answers, put together in one place, so that a test can walk
// all of it.
#pragma once
#include "engine/engine.h"
#include "http/router.h"
#include "server/observe/health_routes.h"
#include "server/observe/metrics.h"
#include "server/turns/dialect.h"
#include "server/turns/turn_service.h"
namespace hearth {

// What is referred to outlives the router.
struct ApiParts {
  SnapshotSource snapshot;  // what it asks outlives the router
  const ServerMetrics& metrics;
  TurnService& service;
  Dialects dialects;                // those of all_dialects.h, and of whoever has another
  Auth status_auth = Auth::kAdmin;  // of GET /status, see there, and of GET /metrics
  HealthNotes health = {};
  bool public_metrics = false;  // GET /metrics for anybody
};
Router ApiRouter(const ApiParts& parts);

}  // namespace hearth
