// SPDX-License-Identifier: Apache-2.0
// Who counts the bytes that requests keep in memory, and says when it is too much: HTTP asks,
// others implement it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "http/head_check.h"
namespace hearth {

struct HttpRequest;

// What one request holds. Gone with it, all is given back. Thread: any.
class RequestHold {
 public:
  virtual ~RequestHold() = default;
  // So many bytes of its body are in memory. What it is refused with when that is too many.
  virtual std::optional<HttpRefusal> SetBody(size_t bytes) = 0;
  // So many bytes of its answer wait for its reader.
  virtual void SetReply(size_t bytes) = 0;
};

// Thread: any.
class RequestBudget {
 public:
  virtual ~RequestBudget() = default;
  struct Opened {
    std::shared_ptr<RequestHold> hold;
    std::optional<HttpRefusal> refusal = {};  // then there is no hold
  };
  // Asked before a byte of the body is read, of which the head may have said how many come. `cut`
  // closes the connection; it may be called from any thread, also after the hold is gone.
  virtual Opened Open(const HttpRequest& request, std::optional<uint64_t> body_bytes,
                      std::function<void()> cut) = 0;
};

}  // namespace hearth
