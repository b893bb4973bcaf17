// SPDX-License-Identifier: Apache-2.0
// Which conversation a request belongs to, as one short word that a balancer can hash: requests of
// the same word find the prompt's beginning in the same replica's cache.
#pragma once
#include <string>

#include "base/json.h"
#include "http/message.h"
namespace hearth {

inline constexpr const char* kSessionHeader = "x-session-affinity";

// The header `x-session-affinity` as it came; else a hash of `prompt_cache_key`, of `user`, or of
// the first two messages (of one only, if it is the user's: the second is not there yet in the
// first request of a conversation). The same on every replica. Empty: nothing tells.
std::string SessionKeyOf(const HttpRequest& http, const Json& body);

}  // namespace hearth
