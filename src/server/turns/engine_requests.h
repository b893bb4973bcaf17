// SPDX-License-Identifier: Apache-2.0
// A turn in the engine's words: one request per prompt.
#pragma once
#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "server/turns/served_model.h"
#include "server/turns/turn_request.h"
namespace hearth {

// `new_seed` is asked where the turn has none. Fails when what the reply must look like cannot be
// kept to.
Result<std::vector<Request>> RequestsFor(const ServedModel& model, const TurnRequest& turn,
                                         std::vector<std::vector<Token>> prompts,
                                         const KvDomain& domain,
                                         const std::function<uint64_t()>& new_seed);

}  // namespace hearth
