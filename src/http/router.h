// SPDX-License-Identifier: Apache-2.0
// Which handler answers which request, and who may ask. A route cannot exist without saying how it
// is guarded; what matches no route is answered by nobody.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/message.h"
namespace hearth {

// No default on purpose: writing a route means deciding this.
enum class Auth : unsigned char {
  kPublic,  // anybody: only what says nothing (is the process alive?)
  kKey,     // any key that is known
  kAdmin,   // a key marked as admin, or the control listener's own socket
};

using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;

struct Route {
  std::string method;
  std::string pattern;  // "/v1/responses/{id}": a part in braces matches one non-empty segment
  Auth auth;
  HttpHandler handler;
  size_t max_body_bytes = 0;  // 0: HttpLimits'
};

// Thread: immutable once the server listens.
class Router {
 public:
  // Two routes of one method and pattern are a bug.
  void Add(std::string method, std::string pattern, Auth auth, HttpHandler handler,
           size_t max_body_bytes = 0);
  // The longest body that may follow this head, "POST /path HTTP/1.1…"; `otherwise` without a limit
  // of the route's own. Only routes without braces have one.
  size_t MaxBody(std::string_view head, size_t otherwise) const;

  struct Match {
    const Route* route = nullptr;
    std::vector<std::string> captures;
  };
  struct Miss {
    bool path_exists = false;  // then it is 405, and `allowed` lists the methods
    std::string allowed;
    std::string nearest;  // else: a path that was probably meant, if any
  };
  // HEAD is answered as GET where that exists; the connection leaves out the body.
  std::variant<Match, Miss> Find(std::string_view method, std::string_view path) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace hearth
