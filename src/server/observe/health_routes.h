// SPDX-License-Identifier: Apache-2.0
// Is the process alive, and does it make progress? Two different questions.
#pragma once
#include "engine/engine.h"
#include "http/router.h"
namespace hearth {

// GET /livez says yes as long as it can say anything. GET /readyz says yes while requests can be
// taken: not while draining, and not while steps have stopped although there is work. Both public,
// neither says anything else. `engine` outlives the router.
void AddHealthRoutes(const Engine& engine, Router& router);

// GET / tells people with a browser where they are. Public, and says nothing else.
void AddFrontPage(Router& router);

}  // namespace hearth
