// SPDX-License-Identifier: Apache-2.0
// Answers that are said at once, whole.
#pragma once
#include <string>

#include "base/json.h"
#include "http/message.h"
#include "server/turns/api_error.h"
namespace hearth {

// {"error": ...} with Retry-After where there is one.
void SendError(HttpReply& reply, const ApiError& error, const std::string& body,
               const std::string& request_id, HttpReply::Headers headers = {});
void SendJson(HttpReply& reply, const Json& json, HttpReply::Headers headers = {});

}  // namespace hearth
