// SPDX-License-Identifier: Apache-2.0
// A small answer as text, with the same patience as a download has.
#pragma once
#include <chrono>
#include <string>

#include "base/result.h"
#include "hub/retry.h"
#include "hub/transport.h"
namespace hearth {

struct TextAnswer {
  HttpHead head;
  std::string body;
};

// `what` names it in messages. kIo when the network fails, kNotFound and kInvalid as FinalError
// says, kExhausted beyond `max_bytes`. Waits at most `stall_time` for each byte.
Result<TextAnswer> FetchText(Transport& transport, const HttpFetch& fetch, const std::string& what,
                             size_t max_bytes, const RetryPolicy& retry,
                             std::chrono::milliseconds stall_time);

}  // namespace hearth
