// SPDX-License-Identifier: Apache-2.0
// Refuses request heads that two readers could understand differently, before the library's parser
// sees them: a proxy in front of us must not disagree about where a request ends. Pure.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
namespace hearth {

struct HttpLimits {
  size_t max_head_bytes = size_t{32} << 10;
  size_t max_target_bytes = size_t{2} << 10;
  int max_headers = 64;
  size_t max_body_bytes = size_t{4} << 20;
  // A body in one-byte chunks costs five times its size in framing; this many are enough for any
  // client that means well.
  int max_chunks = 65536;
};

// What goes on the wire instead of an answer. After it the connection is closed.
struct HttpRefusal {
  int status = 400;
  std::string message;
  std::string path = {};  // that was asked for; empty when it was not read so far
  int retry_after_s = 0;  // above 0 it becomes a Retry-After header
};

// Where the head ends (one past its empty line), if it is all there.
std::optional<size_t> HeadEnd(std::string_view bytes);

// `head` is whole, its empty line included. Refused: bare CR or LF, control bytes, folded lines,
// blanks before a colon, no or two hosts, a length that is not all digits, two lengths even when
// equal, a length beside an encoding, an encoding other than one plain "chunked", any encoding in
// HTTP/1.0, a target that is not a plain path, other versions, anything beyond the limits.
std::optional<HttpRefusal> CheckHead(std::string_view head, const HttpLimits& limits);

}  // namespace hearth
