// SPDX-License-Identifier: Apache-2.0
// What is asked of every request before its body is read: does it come for this host, from no
// foreign web page, and from somebody we know. Pure.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/head_check.h"
#include "http/message.h"
#include "http/router.h"
#include "server/access/keys.h"
namespace hearth {

struct GuardPolicy {
  std::vector<std::string> hosts = {};    // beside the loopback names; without ports
  std::vector<std::string> origins = {};  // web pages that may ask, as browsers write them
  bool needs_key = false;                 // without: everybody on the listener is one tenant
};

// `keys` may be null when no key is needed. Fills key_id.
std::optional<HttpRefusal> Guard(HttpRequest& request, Auth auth, const GuardPolicy& policy,
                                 const KeyRing* keys);

// Whether only this machine can reach the address.
bool IsLoopback(std::string_view address);

}  // namespace hearth
