// SPDX-License-Identifier: Apache-2.0
#include "server/access/guard.h"

#include <algorithm>
#include <set>

#include "http/authority.h"

namespace hearth {
namespace {

bool Holds(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// A page that rebinds its own name to 127.0.0.1 still sends that name here.
bool IsOurHost(const Authority& host, const GuardPolicy& policy) {
  return IsLoopbackHost(host) || Holds(policy.hosts, host.host);
}

// The page that this server itself shows: browsers send its origin with every POST. Under a name
// that was rebound to this machine origin and host agree as well, so this counts only after
// IsOurHost.
bool IsOwnPage(std::string_view origin, std::string_view host) {
  const std::optional<WebOrigin> page = ParseOrigin(origin);
  if (!page || (page->scheme != "http" && page->scheme != "https")) return false;
  // The host as an origin of the same scheme: a port that the scheme has anyway is no difference.
  return page == ParseOrigin(page->scheme + "://" + std::string(host));
}

// No host is no harm: HTTP/1.0 may come without one, as health checks of balancers do, and heads of
// HTTP/1.1 without one do not get here. Whoever reached the Unix socket may call it anything.
std::optional<HttpRefusal> CheckHost(const HttpRequest& request, const GuardPolicy& policy) {
  if (request.peer == "unix") return std::nullopt;
  for (const HttpHeader& header : request.headers) {
    if (header.name != "host") continue;
    const std::optional<Authority> host = ParseAuthority(header.value);
    if (!host) return HttpRefusal{400, "the Host header is not a host name or address"};
    if (!IsOurHost(*host, policy)) {
      return HttpRefusal{403, "the Host header does not name this server (see --host-name)"};
    }
  }
  return std::nullopt;
}

std::string_view PresentedKey(const HttpRequest& request) {
  const std::string_view bearer = request.header("authorization");
  if (bearer.starts_with("Bearer ")) return bearer.substr(7);
  return request.header("x-api-key");  // where Anthropic's clients put it
}

bool IsJson(const HttpRequest& request) {
  const std::string_view type = request.header("content-type");
  return type.substr(0, type.find(';')) == "application/json";
}

// Browsers say so in every request that a page makes; `curl -d` and its like say none of these.
bool IsFromBrowser(const HttpRequest& request) {
  return !request.header("origin").empty() || !request.header("sec-fetch-site").empty() ||
         !request.header("referer").empty() || !request.header("cookie").empty();
}

}  // namespace

HttpReply::Headers OriginHeaders(const HttpRequest& request, const GuardPolicy& policy) {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !Holds(policy.origins, origin)) return {};
  return {{"access-control-allow-origin", std::string(origin)},
          {"access-control-expose-headers", "*"},
          {"vary", "origin"}};
}

void AddPreflights(Router& router) {
  std::set<std::string> patterns;
  for (const Route& route : router.routes()) patterns.insert(route.pattern);
  for (const std::string& pattern : patterns) {
    router.Add("OPTIONS", pattern, Auth::kPublic,
               [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
                 HttpReply::Headers headers{{"access-control-allow-methods", "GET, POST, DELETE"},
                                            {"access-control-max-age", "600"}};
                 // SDKs send a dozen of their own; the key is what counts.
                 const std::string_view wanted = request.header("access-control-request-headers");
                 if (!wanted.empty()) {
                   headers.push_back({"access-control-allow-headers", std::string(wanted)});
                 }
                 reply->Send(200, std::move(headers), "");
               });
  }
}

bool IsLoopback(std::string_view address) {
  const std::optional<Authority> host =
      ParseAuthority(address == "::1" ? std::string_view("[::1]") : address);
  return host && host->port < 0 && host->host != "localhost" && IsLoopbackHost(*host);
}

std::optional<HttpRefusal> Guard(HttpRequest& request, Auth auth, const GuardPolicy& policy,
                                 const KeyRing* keys) {
  if (auto refusal = CheckHost(request, policy)) return refusal;
  const std::string_view host = request.header("host");
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && !IsOwnPage(origin, host) && !Holds(policy.origins, origin)) {
    return HttpRefusal{403,
                       "requests from this browser origin are not allowed (see --allow-origin)"};
  }
  if (request.method == "POST" && !IsJson(request) && IsFromBrowser(request)) {
    // A page could send any other type without asking first.
    return HttpRefusal{415, "the header content-type must be application/json"};
  }
  if (auth == Auth::kPublic) return std::nullopt;
  if (!policy.needs_key && auth == Auth::kKey) return std::nullopt;
  const KeyInfo* key = keys == nullptr ? nullptr : keys->Find(PresentedKey(request));
  if (key == nullptr && !policy.needs_key) {
    return HttpRefusal{
        401, "this path needs an admin key (--keys), or the control port (--control-port)"};
  }
  if (key == nullptr) {
    return HttpRefusal{401,
                       PresentedKey(request).empty()
                           ? "an API key is required: send the header Authorization: Bearer KEY"
                           : "invalid API key: check it for a typing error, or make a new one with "
                             "`hearth key`"};
  }
  if (auth == Auth::kAdmin && !key->is_admin) {
    return HttpRefusal{403, "an admin key is required: make one with `hearth key ID --admin`"};
  }
  request.key_id = key->id;
  request.is_admin = key->is_admin;
  return std::nullopt;
}

}  // namespace hearth
