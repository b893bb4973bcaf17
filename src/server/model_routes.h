// SPDX-License-Identifier: Apache-2.0
// What is served and what is not: /v1/models, and paths that clients know of other servers.
#pragma once
#include "http/router.h"
#include "server/turns/turn_service.h"
namespace hearth {

// `service` outlives the router.
void AddModelRoutes(TurnService& service, Router& router);

}  // namespace hearth
