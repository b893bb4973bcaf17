// SPDX-License-Identifier: Apache-2.0
#include "server/turns/overload.h"

namespace hearth {
namespace {

void SayFull(ApiError& error, int overload_status) {
  if (error.status != 429 || overload_status == 429) return;
  error.status = overload_status;
  error.type = "server_error";
}

}  // namespace

ApiError Overloaded(const Admission& admission, bool is_draining, int overload_status) {
  ApiError error = FromStatus(admission.status);
  error.retry_after_s = admission.retry_after_s;
  if (is_draining && error.status == 429) {
    error.status = 503;
    error.type = "server_error";
    error.code = "shutting_down";
  }
  SayFull(error, overload_status);
  return error;
}

ApiError TooManyUnread(int overload_status) {
  ApiError error = FromStatus(Status(
      Code::kExhausted, "the server is overloaded: too many requests are waiting to be parsed"));
  error.retry_after_s = 1;
  SayFull(error, overload_status);
  return error;
}

}  // namespace hearth
