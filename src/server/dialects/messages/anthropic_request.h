// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/messages, Anthropic's way to ask, read and checked.
#pragma once
#include <span>

#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

std::span<const Field> MessagesFields();

struct MessagesRequest {
  TurnRequest turn;
  bool shows_thinking = false;  // only those who ask for thoughts are told them
};
// `counts` for /v1/messages/count_tokens, which needs no max_tokens.
ApiResult<MessagesRequest> ReadMessagesRequest(const Json& body, bool counts);

}  // namespace hearth
