// SPDX-License-Identifier: Apache-2.0
#include "http/request_head.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/error.hpp>

#include "base/ascii.h"

namespace hearth {

bool IsPlainHttp(const boost::system::error_code& ec) {
  return ec.category() == boost::asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(ec.value())) == SSL_R_HTTP_REQUEST;
}

HttpRequest AsRequest(const boost::beast::http::request<boost::beast::http::string_body>& message,
                      const std::string& peer) {
  HttpRequest request;
  const std::string_view target(message.target().data(), message.target().size());
  const size_t question = target.find('?');
  request.method = std::string(message.method_string());
  request.path = target.substr(0, question);
  if (question != target.npos) request.query = target.substr(question + 1);
  for (const auto& field : message) {
    const std::string_view name(field.name_string().data(), field.name_string().size());
    request.headers.push_back({LowerAscii(name), std::string(field.value())});
  }
  request.peer = peer;
  return request;
}

std::optional<HttpRefusal> CheckRoute(const HttpOptions& options,
                                      const std::variant<Router::Match, Router::Miss>& found,
                                      HttpRequest& request) {
  if (const auto* miss = std::get_if<Router::Miss>(&found)) {
    if (!miss->path_exists) {
      const bool is_near = !miss->nearest.empty();
      return HttpRefusal{
          404, "Not found" + (is_near ? "; did you mean " + miss->nearest + "?" : std::string())};
    }
    return HttpRefusal{405, "method not allowed; this path accepts " + miss->allowed};
  }
  const Auth auth = std::get<Router::Match>(found).route->auth;
  if (options.authorize) return options.authorize(request, auth);
  // Without anybody to ask, only what is public is answered.
  if (auth == Auth::kPublic) return std::nullopt;
  return HttpRefusal{401, "an API key is required"};
}

}  // namespace hearth
