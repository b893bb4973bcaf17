// SPDX-License-Identifier: Apache-2.0
// The path of a Unix socket: a server may take one that is free or left behind by the dead, and
// never one that somebody listens on.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
namespace hearth {

// Calls `bind`, which must bind and listen, with the path free: a socket that nobody answers on is
// removed first. kInvalid when a server answers there. Of two that call it at the same time one
// succeeds: the folder is locked meanwhile.
Status BindLocalSocket(const std::string& path, const std::function<Status()>& bind);

}  // namespace hearth
