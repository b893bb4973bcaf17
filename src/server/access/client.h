// SPDX-License-Identifier: Apache-2.0
// Whose request it is, where clients are to share something.
#pragma once
#include <string>

#include "http/message.h"
namespace hearth {

// Its key, or without one its address, of which the last 64 bits of an IPv6 one are anybody's to
// choose.
std::string ClientOf(const HttpRequest& http);

// Whether it is told what others do, such as when a model was used last: an admin, and without keys
// everybody.
bool SeesOthers(const HttpRequest& http);

}  // namespace hearth
