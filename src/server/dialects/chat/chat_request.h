// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/chat/completions, read and checked.
#pragma once
#include <span>

#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

std::span<const Field> ChatFields();
ApiResult<TurnRequest> ReadChatRequest(const Json& body);

}  // namespace hearth
