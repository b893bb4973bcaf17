// SPDX-License-Identifier: Apache-2.0
// The OpenAI routes: chat completions, completions, models; and those for tokens that its servers
// share.
#pragma once
#include "http/router.h"
#include "server/turns/turn_service.h"
namespace hearth {

// `service` outlives the router.
void AddOpenAiRoutes(TurnService& service, Router& router);

}  // namespace hearth
