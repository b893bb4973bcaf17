// SPDX-License-Identifier: Apache-2.0
// OpenAI's /v1/responses: make one, go on from one, look at, delete and count them.
#pragma once
#include "http/router.h"
#include "server/turns/response_store.h"
#include "server/turns/turn_service.h"
namespace hearth {

// Both outlive the router and the service's last reply.
void AddResponsesRoutes(TurnService& service, ResponseStore& store, Router& router);

}  // namespace hearth
