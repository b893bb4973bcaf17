// SPDX-License-Identifier: Apache-2.0
// Models behind a server that is running already: `hearth serve`, or another with the same API.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "ask/server_call.h"
#include "base/json.h"
#include "base/result.h"
#include "talk/answerer.h"
namespace hearth {

// Asks nothing yet. An empty name, given to Open, means the only model that the server has.
// `schema`: every reply is held to it.
Result<std::unique_ptr<AnswererSource>> NewServerSource(ServerAddress address,
                                                        std::optional<Json> schema);

}  // namespace hearth
