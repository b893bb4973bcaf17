// SPDX-License-Identifier: Apache-2.0
// A request that finds no memory ends alone. Around each stage of its way: what the stage had is
// given back while the exception passes, and others go on.
#pragma once
#include <new>

#include "server/turns/api_error.h"
namespace hearth {

// 503, to be tried again.
inline ApiError OutOfMemory() {
  ApiError error;
  error.status = 503;
  error.type = "server_error";
  error.code = "out_of_memory";
  error.message = "the server has no memory for this request";
  error.retry_after_s = 1;
  return error;
}

// What `work` says, or that there is no memory.
template <class Work>
ApiStatus WithinMemory(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// Does `work`, and `without` when there is no memory for it.
template <class Work, class Without>
void WithinMemoryOr(Work&& work, Without&& without) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    without();
  }
}

}  // namespace hearth
