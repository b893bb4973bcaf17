// SPDX-License-Identifier: Apache-2.0
// How a server that has too much to do says so. Its own limits on a key are always 429; for what
// another replica could take, the operator chooses the status: 429 for clients alone with one
// server, 503 for balancers that then try another replica, 529 for clients of Anthropic's and
// NVIDIA Dynamo's kind. Pure.
#pragma once
#include "engine/request.h"
#include "server/turns/api_error.h"
namespace hearth {

// The engine's answer, in the words of HTTP.
ApiError Overloaded(const Admission& admission, bool is_draining, int overload_status);
ApiError TooManyUnread(int overload_status);

}  // namespace hearth
