// SPDX-License-Identifier: Apache-2.0
#include "server/turns/why_ended.h"

#include "server/turns/within_memory.h"

namespace hearth {

// No 200 for a failure: what a request that did not reach its end is answered.
ApiError WhyItEnded(const RequestRecord& record, const std::string& mask_field) {
  if (record.finish == Finish::kMask) {
    return BadField(mask_field, "cannot be satisfied: " + record.detail, NameOf(record.finish));
  }
  if (record.lacked_memory) {
    ApiError error = OutOfMemory();
    error.message += ": " + record.detail;
    return error;
  }
  if (record.finish == Finish::kCancelled) return ClientLeft();
  ApiError error;
  error.type = "server_error";
  error.code = NameOf(record.finish);
  error.status = 500;
  error.message = record.detail.empty() ? "the request ended early" : record.detail;
  if (record.finish == Finish::kExpired) {
    error.status = 504;
    error.message = "the request timed out";
  } else if (record.finish == Finish::kShutdown) {
    error.status = 503;
    error.message = "the server is shutting down";
    error.retry_after_s = 1;
  } else if (record.finish == Finish::kSlowReader) {
    error.message = "the client did not read the reply in time";
  }
  return error;
}

ApiError ClientLeft() {
  ApiError error;
  error.status = 499;
  error.type = "server_error";
  error.code = NameOf(Finish::kCancelled);
  error.message = "the client disconnected";
  return error;
}

ApiError CutForMemory() {
  ApiError error = OutOfMemory();
  error.message =
      "the server's memory for requests is full, and this client's hold the most of it: this one "
      "was given up";
  return error;
}

}  // namespace hearth
