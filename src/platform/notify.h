// SPDX-License-Identifier: Apache-2.0
// Telling the service manager how far the program is: systemd's Type=notify.
#pragma once
#include <string_view>

#include "base/result.h"
namespace hearth {

// Sends `state`, such as "READY=1" or "STOPPING=1", to the socket that $NOTIFY_SOCKET names, and
// does nothing without one. Never waits: a manager that does not read must not stop the server.
Status NotifyManager(std::string_view state);

}  // namespace hearth
