// SPDX-License-Identifier: Apache-2.0
#include "http/reason.h"

// clang-format off: Boost 1.81's string_view uses <ostream> without including it.
#include <ostream>
#include <boost/beast/http/status.hpp>
// clang-format on

namespace hearth {

std::string_view ReasonOf(int status) {
  namespace http = boost::beast::http;
  const auto text = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

}  // namespace hearth
