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
  std::vector<std::string> hosts = {};    // beside the loopback names; as Authority::host is
  std::vector<std::string> origins = {};  // web pages that may ask, as browsers write them
  bool needs_key = false;                 // without: everybody on the listener is one tenant
};

// `keys` may be null when no key is needed. Fills key_id and is_admin.
std::optional<HttpRefusal> Guard(HttpRequest& request, Auth auth, const GuardPolicy& policy,
                                 const KeyRing* keys);

// What an answer to a web page of an allowed origin says beside itself, so that the browser hands
// it to the page; nothing for other requests.
HttpReply::Headers OriginHeaders(const HttpRequest& request, const GuardPolicy& policy);

// Browsers ask (OPTIONS) before a page may send what is not a plain form. Answers that for every
// route there is; whether the origin may ask is Guard's to say.
void AddPreflights(Router& router);

// Whether only this machine can reach the address (no name).
bool IsLoopback(std::string_view address);

}  // namespace hearth
