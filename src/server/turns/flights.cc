// SPDX-License-Identifier: Apache-2.0
#include "server/turns/flights.h"

namespace hearth {

ApiError EndedProcesses() {
  ApiError error;
  error.status = 422;
  error.code = "request_ended_server";
  error.message =
      "this request was being processed both times when the server last crashed, so it is refused "
      "for 15 minutes; change it, or report it with the server's log";
  return error;
}

}  // namespace hearth
