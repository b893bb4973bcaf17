// SPDX-License-Identifier: Apache-2.0
#include "server/turns/request_names.h"

#include <random>
#include <string_view>

#include "base/result.h"

namespace hearth {

std::string NewId() {
  std::random_device random;
  return Printf("%08x%08x%08x", random(), random(), random());
}

std::string TraceParent(const HttpRequest& http) {
  const std::string_view given = http.header("traceparent");
  const bool is_plain =
      given.size() == 55 && given.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
  return is_plain ? std::string(given) : "";
}

}  // namespace hearth
