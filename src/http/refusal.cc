// SPDX-License-Identifier: Apache-2.0
#include "http/refusal.h"

#include <string>

#include "base/json.h"

namespace hearth {

std::string DefaultRefusal(const HttpRefusal& refusal) {
  return WriteJson(JsonObject{{"error", JsonObject{{"message", refusal.message}}}});
}

HttpReply::Headers RefusalHeaders(const HttpRefusal& refusal) {
  HttpReply::Headers headers{{"content-type", "application/json"}};
  if (refusal.retry_after_s > 0) {
    headers.push_back({"retry-after", std::to_string(refusal.retry_after_s)});
  }
  return headers;
}

}  // namespace hearth
