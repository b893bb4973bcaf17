// SPDX-License-Identifier: Apache-2.0
// Anthropic's routes: /v1/messages and /v1/messages/count_tokens.
#pragma once
#include "http/router.h"
#include "server/turns/turn_service.h"
namespace hearth {

// `service` outlives the router.
void AddAnthropicRoutes(TurnService& service, Router& router);

}  // namespace hearth
