// SPDX-License-Identifier: Apache-2.0
#include "http/head_check.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/result.h"

namespace hearth {
namespace {

// RFC 9110's token: what names and methods are made of.
bool IsTokenByte(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte);
}

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  const auto same = [](char a, char b) { return LowerAscii(a) == b; };
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), same);
}

std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

HttpRefusal Refuse(int status, const char* message) { return {status, message}; }

// Takes one line without its CR LF; nothing when there is a lone CR or LF.
std::optional<std::string_view> TakeLine(std::string_view& rest) {
  const size_t end = rest.find_first_of("\r\n");
  if (end == std::string_view::npos || rest.substr(end, 2) != "\r\n") return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return line;
}

// What the framing depends on, counted over all headers.
struct Framing {
  bool http_1_0 = false;
  int hosts = 0, lengths = 0, encodings = 0;
};

std::optional<HttpRefusal> CheckRequestLine(std::string_view line, const HttpLimits& limits,
                                            Framing& framing) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Refuse(400, "malformed request line");
  }
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!IsToken(method) || method.size() > 16) return Refuse(400, "malformed method");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return version.starts_with("HTTP/") ? Refuse(505, "only HTTP/1.1 and HTTP/1.0 are supported")
                                        : Refuse(400, "malformed request line");
  }
  framing.http_1_0 = version == "HTTP/1.0";
  if (target.size() > limits.max_target_bytes) {
    return HttpRefusal{414, Printf("the request target has %zu bytes; the limit is %zu",
                                   target.size(), limits.max_target_bytes)};
  }
  const bool printable = std::all_of(target.begin(), target.end(),
                                     [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
  if (!target.starts_with('/') || !printable)
    return Refuse(400,
                  "the request target must be a path that starts with / and has only printable "
                  "ASCII characters other than #");
  return std::nullopt;
}

std::optional<HttpRefusal> CheckLength(std::string_view value, Framing& framing) {
  if (++framing.lengths > 1) return Refuse(400, "more than one content-length");
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
  // 18 digits cannot overflow, and no body that is taken needs more.
  if (!digits || value.size() > 18) return Refuse(400, "content-length is not a number");
  return std::nullopt;
}

std::optional<HttpRefusal> CheckHeaderLine(std::string_view line, Framing& framing) {
  if (line.front() == ' ' || line.front() == '\t')
    return Refuse(400, "folded header lines are not supported");
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !IsToken(name)) {
    return Refuse(400, "malformed header name");
  }
  const std::string_view value = Trimmed(line.substr(colon + 1));
  const bool clean = std::all_of(value.begin(), value.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
  });
  if (!clean) return Refuse(400, "a header contains a control character");
  if (EqualsIgnoringCase(name, "host")) ++framing.hosts;
  if (EqualsIgnoringCase(name, "content-length")) return CheckLength(value, framing);
  if (EqualsIgnoringCase(name, "transfer-encoding")) {
    if (++framing.encodings > 1) return Refuse(400, "more than one transfer-encoding");
    if (!EqualsIgnoringCase(value, "chunked"))
      return Refuse(501, "transfer-encoding: only chunked is supported");
  }
  if (EqualsIgnoringCase(name, "expect") && !EqualsIgnoringCase(value, "100-continue")) {
    return Refuse(417, "the expect header must be 100-continue");
  }
  return std::nullopt;
}

std::optional<HttpRefusal> CheckFraming(const Framing& framing) {
  if (framing.hosts > 1 || (framing.hosts == 0 && !framing.http_1_0)) {
    return Refuse(400, "exactly one host header is required");
  }
  if (framing.lengths > 0 && framing.encodings > 0) {
    return Refuse(400, "content-length and transfer-encoding must not be sent together");
  }
  if (framing.http_1_0 && framing.encodings > 0) {
    return Refuse(400, "transfer-encoding is not allowed in HTTP/1.0");
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> HeadEnd(std::string_view bytes) {
  const size_t at = bytes.find("\r\n\r\n");
  if (at == std::string_view::npos) return std::nullopt;
  return at + 4;
}

std::optional<HttpRefusal> CheckHead(std::string_view head, const HttpLimits& limits) {
  if (head.size() > limits.max_head_bytes) return Refuse(431, "the request headers are too long");
  Framing framing;
  std::optional<std::string_view> line = TakeLine(head);
  if (!line) return Refuse(400, "request and header lines must end in CR LF");
  if (auto refusal = CheckRequestLine(*line, limits, framing)) return refusal;
  for (int headers = 0;; ++headers) {
    line = TakeLine(head);
    if (!line) return Refuse(400, "request and header lines must end in CR LF");
    if (line->empty()) break;
    if (headers == limits.max_headers) return Refuse(431, "too many headers");
    if (auto refusal = CheckHeaderLine(*line, framing)) return refusal;
  }
  if (!head.empty()) return Refuse(400, "unexpected bytes after the request headers");
  return CheckFraming(framing);
}

}  // namespace hearth
