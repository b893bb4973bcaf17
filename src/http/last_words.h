// SPDX-License-Identifier: Apache-2.0
// What a client reads when there is no memory to make it a reply: whole replies, made when the
// server starts, in the words of the API that was asked.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/head_check.h"
#include "http/router.h"
namespace hearth {

// Thread: immutable.
class LastWords {
 public:
  using Describe = std::function<std::string(const HttpRefusal&)>;
  LastWords() = default;
  LastWords(const Router& router, const Describe& describe);
  // The reply to a request that begins with `head`: a 503 that closes. Takes no memory.
  std::string_view For(std::string_view head) const noexcept;

 private:
  struct Row {
    std::string beginning;  // of paths
    std::string reply;
    size_t head_bytes = 0;  // of it, for HEAD
  };
  std::vector<Row> rows_;  // the longest beginning first; the last one is of every path
};

// For a connection whose coroutine was lost, straight to its plain socket: `reply`, or where it is
// empty what `words` has for the request that waits there, if any. What has come is read away
// first: a socket that is closed before takes the reply with it. Never waits, takes no memory.
void SayLast(int socket, const LastWords& words, std::string_view reply) noexcept;

}  // namespace hearth
