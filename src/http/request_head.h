// SPDX-License-Identifier: Apache-2.0
// From a head that was read to the request that handlers see, and who may ask it. Internal to the
// room.
#pragma once
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <optional>
#include <string>
#include <variant>

#include "http/http_server.h"
namespace hearth {

// Of a TLS handshake that failed: what came was the beginning of a request.
bool IsPlainHttp(const boost::system::error_code& ec);

HttpRequest AsRequest(const boost::beast::http::request<boost::beast::http::string_body>& message,
                      const std::string& peer);

// Why it is not answered: no such route, or not for whoever asks. May fill the request's key_id.
std::optional<HttpRefusal> CheckRoute(const HttpOptions& options,
                                      const std::variant<Router::Match, Router::Miss>& found,
                                      HttpRequest& request);

}  // namespace hearth
