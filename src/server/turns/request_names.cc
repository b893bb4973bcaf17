// SPDX-License-Identifier: Apache-2.0
#include "server/turns/request_names.h"

#include <string_view>

#include "base/fresh_random.h"

namespace hearth {

std::string NewId() { return FreshHex(12); }

std::string TraceParent(const HttpRequest& http) {
  const std::string_view given = http.header("traceparent");
  const bool is_plain =
      given.size() == 55 && given.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
  return is_plain ? std::string(given) : "";
}

}  // namespace hearth
