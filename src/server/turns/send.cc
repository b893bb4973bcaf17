// SPDX-License-Identifier: Apache-2.0
#include "server/turns/send.h"

#include <cmath>
#include <utility>

namespace hearth {

void SendError(HttpReply& reply, const ApiError& error, const std::string& body,
               const std::string& request_id, HttpReply::Headers headers) {
  headers.push_back({"content-type", "application/json"});
  if (!request_id.empty()) {
    headers.push_back({"x-request-id", request_id});
    headers.push_back({"request-id", request_id});
  }
  if (error.retry_after_s > 0) {
    headers.push_back({"retry-after", Printf("%.0f", std::ceil(error.retry_after_s))});
  }
  reply.Send(error.status, std::move(headers), body);
}

void SendJson(HttpReply& reply, const Json& json, HttpReply::Headers headers) {
  headers.push_back({"content-type", "application/json"});
  reply.Send(200, std::move(headers), WriteJson(json));
}

}  // namespace hearth
