// SPDX-License-Identifier: Apache-2.0
// Everything that the API's listener answers, put together in one place, so that a test can walk
// all of it.
#pragma once
#include "engine/engine.h"
#include "http/router.h"
#include "server/observe/metrics.h"
#include "server/turns/response_store.h"
#include "server/turns/turn_service.h"
namespace hearth {

// All of it outlives the router.
struct ApiParts {
  const Engine& engine;
  const ServerMetrics& metrics;
  TurnService& service;
  ResponseStore& responses;
  Auth status_auth = Auth::kAdmin;  // of GET /status, see there
};
Router ApiRouter(const ApiParts& parts);

}  // namespace hearth
