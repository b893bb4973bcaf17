// SPDX-License-Identifier: Apache-2.0
// Is the process alive, and does it make progress? Two different questions.
#pragma once
#include <functional>
#include <string>

#include "engine/engine.h"
#include "http/router.h"
namespace hearth {

struct HealthNotes {
  std::string restarts = {};             // a line for /readyz; empty: none
  std::function<bool()> is_wedged = {};  // the process is about to end itself; may be empty
  // It will drain soon and still takes requests: balancers are to look elsewhere. May be empty.
  std::function<bool()> is_leaving = {};
};
// GET /livez says yes as long as it can say anything, unless the process is wedged: then it is no
// use to anybody. GET /readyz says yes while requests can be taken: not while draining, and not
// while steps have stopped although there is work; and how often a dead process was replaced. Both
// public, neither says anything else. What `source` asks outlives the router.
void AddHealthRoutes(const SnapshotSource& source, Router& router, const HealthNotes& notes = {});

}  // namespace hearth
