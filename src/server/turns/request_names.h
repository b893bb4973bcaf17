// SPDX-License-Identifier: Apache-2.0
// What a request is called in answers and logs.
#pragma once
#include <string>

#include "http/message.h"
namespace hearth {

// 24 hexadecimal digits. Unguessable, so that one client cannot name another's reply, and no count:
// it does not tell how many others were made.
std::string NewId();

// Only what the standard says a traceparent is goes on to logs and answers.
std::string TraceParent(const HttpRequest& http);

}  // namespace hearth
