// SPDX-License-Identifier: Apache-2.0
// OpenAI's /v1/responses: make one, go on from one, look at, delete and count them.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
#include "server/turns/response_store.h"
namespace hearth {

// `store` outlives the service's last reply.
std::shared_ptr<const Dialect> MakeResponsesDialect(ResponseStore& store);

}  // namespace hearth
