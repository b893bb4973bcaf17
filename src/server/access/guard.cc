// SPDX-License-Identifier: Apache-2.0
#include "server/access/guard.h"

#include <algorithm>

namespace hearth {
namespace {

std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool Holds(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// A page that rebinds its own name to 127.0.0.1 still sends that name here.
bool IsOurHost(std::string_view header, const GuardPolicy& policy) {
  const std::string_view host = WithoutPort(header);
  return host == "localhost" || host == "[::1]" || IsLoopback(host) || Holds(policy.hosts, host);
}

std::string_view PresentedKey(const HttpRequest& request) {
  const std::string_view bearer = request.header("authorization");
  if (bearer.starts_with("Bearer ")) return bearer.substr(7);
  return request.header("x-api-key");  // where Anthropic's clients put it
}

}  // namespace

bool IsLoopback(std::string_view address) {
  if (address == "::1") return true;
  return address.starts_with("127.") && std::count(address.begin(), address.end(), '.') == 3 &&
         address.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::optional<HttpRefusal> Guard(HttpRequest& request, Auth auth, const GuardPolicy& policy,
                                 const KeyRing* keys) {
  // HTTP/1.0 may come without a host: health checks of balancers do.
  const std::string_view host = request.header("host");
  if (!host.empty() && request.peer != "unix" && !IsOurHost(host, policy)) {
    return HttpRefusal{403, "this host is not served here (see --host-name)"};
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && !Holds(policy.origins, origin)) {
    return HttpRefusal{403, "web pages of this origin are not served (see --allow-origin)"};
  }
  if (request.method == "POST") {
    // Anything else a page could send without asking first.
    const std::string_view type = request.header("content-type");
    if (type.substr(0, type.find(';')) != "application/json") {
      return HttpRefusal{415, "the header content-type must be application/json"};
    }
  }
  if (auth == Auth::kPublic) return std::nullopt;
  if (!policy.needs_key && auth == Auth::kKey) return std::nullopt;
  const KeyInfo* key = keys == nullptr ? nullptr : keys->Find(PresentedKey(request));
  if (key == nullptr && !policy.needs_key) {
    return HttpRefusal{401,
                       "this is for the control port (--control-port), or for an admin's key "
                       "where keys are in use (--keys)"};
  }
  if (key == nullptr) {
    return HttpRefusal{401, PresentedKey(request).empty()
                                ? "an API key is needed, as Authorization: Bearer KEY"
                                : "this API key is not known here"};
  }
  if (auth == Auth::kAdmin && !key->is_admin) return HttpRefusal{403, "an admin's key is needed"};
  request.key_id = key->id;
  return std::nullopt;
}

}  // namespace hearth
