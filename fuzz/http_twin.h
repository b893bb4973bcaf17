// SPDX-License-Identifier: Apache-2.0
// How HTTP/1.1 may be read so that nobody can read it differently: a slow reader of all bytes at
// once, written from the grammar of RFC 9112 and sharing no code with src/http.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/head_check.h"
namespace hearth::http_twin {

struct Taken {
  std::string method, target, body;
  bool keeps = true;  // the connection goes on after the answer
  bool operator==(const Taken&) const = default;
};

// What a connection that is sent these bytes comes to.
struct Reading {
  enum class End : unsigned char {
    kWaits,    // for more bytes
    kRefuses,  // answers the bytes after the last one taken with an error, and closes
    kCloses,   // after the last one taken, as the client or HTTP/1.0 wants
    kEither,   // a corner where taking and refusing are both sound: trailers, lists in Connection
  };
  std::vector<Taken> taken;
  End end = End::kWaits;
};

inline bool IsNameByte(char c) {
  const bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return is_word || (c > ' ' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string::npos);
}
inline bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsNameByte);
}
inline std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

// Lines, each ended by CR LF and without either inside; none when the text is anything else.
inline std::optional<std::vector<std::string>> Lines(std::string text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find("\r\n");
    if (end == std::string::npos) return std::nullopt;
    lines.push_back(text.substr(0, end));
    if (lines.back().find_first_of("\r\n") != std::string::npos) return std::nullopt;
    text.erase(0, end + 2);
  }
  return lines;
}

// Name in lower case and value without blanks around it.
inline std::optional<std::pair<std::string, std::string>> Header(const std::string& line) {
  const size_t colon = line.find(':');
  if (colon == std::string::npos || !IsName(line.substr(0, colon))) return std::nullopt;
  std::string value = line.substr(colon + 1);
  for (const char c : value) {
    if (c != '\t' && (static_cast<unsigned char>(c) < 32 || c == 127)) return std::nullopt;
  }
  const size_t from = value.find_first_not_of(" \t"), to = value.find_last_not_of(" \t");
  value = from == std::string::npos ? "" : value.substr(from, to - from + 1);
  return std::pair(Lower(line.substr(0, colon)), value);
}

class Reader {
 public:
  Reader(std::string bytes, const HttpLimits& limits) : rest_(std::move(bytes)), limits_(limits) {}

  Reading Read() {
    Reading reading;
    while (true) {
      Taken taken;
      const std::optional<Reading::End> end = One(taken);
      if (end) {
        reading.end = *end;
        return reading;
      }
      reading.taken.push_back(taken);
      if (!taken.keeps) {
        reading.end = Reading::End::kCloses;
        return reading;
      }
    }
  }

 private:
  using End = Reading::End;

  std::optional<End> One(Taken& taken) {
    if (rest_.starts_with("\x16\x03")) return End::kRefuses;  // TLS, which waits for an answer
    const size_t end = rest_.find("\r\n\r\n");
    if (end == std::string::npos) {
      return rest_.size() > limits_.max_head_bytes ? End::kRefuses : End::kWaits;
    }
    if (end + 4 > limits_.max_head_bytes) return End::kRefuses;
    const auto lines = Lines(rest_.substr(0, end + 2));
    rest_.erase(0, end + 4);
    if (!lines || lines->empty()) return End::kRefuses;
    if (!RequestLine(lines->front(), taken)) return End::kRefuses;
    std::multimap<std::string, std::string> headers;
    for (size_t i = 1; i < lines->size(); ++i) {
      const auto header = Header((*lines)[i]);
      if (!header) return End::kRefuses;
      headers.insert(*header);
    }
    if (headers.size() > static_cast<size_t>(limits_.max_headers)) return End::kRefuses;
    if (const auto ends = Framing(headers, taken)) return ends;
    return Body(headers, taken);
  }

  bool RequestLine(const std::string& line, Taken& taken) {
    const size_t first = line.find(' '), last = line.rfind(' ');
    if (first == std::string::npos || first == last) return false;
    taken.method = line.substr(0, first);
    taken.target = line.substr(first + 1, last - first - 1);
    const std::string version = line.substr(last + 1);
    is_1_0_ = version == "HTTP/1.0";
    if (version != "HTTP/1.1" && !is_1_0_) return false;
    if (!IsName(taken.method) || taken.method.size() > 16) return false;
    if (taken.target.size() > limits_.max_target_bytes || taken.target[0] != '/') return false;
    for (const char c : taken.target) {
      if (c < 33 || c > 126 || c == '#') return false;
    }
    const bool is_known = taken.target == "/e" || taken.target.rfind("/e?", 0) == 0;
    if (taken.target == "/e?") taken.target = "/e";  // handlers cannot tell them apart
    return is_known && (taken.method == "POST" || taken.method == "GET" || taken.method == "HEAD");
  }

  std::optional<End> Framing(const std::multimap<std::string, std::string>& headers, Taken& taken) {
    const size_t hosts = headers.count("host"), lengths = headers.count("content-length");
    const size_t encodings = headers.count("transfer-encoding");
    if (hosts > 1 || (hosts == 0 && !is_1_0_) || lengths + encodings > 1) return End::kRefuses;
    if (is_1_0_ && encodings > 0) return End::kRefuses;
    const auto [from, to] = headers.equal_range("expect");
    for (auto at = from; at != to; ++at) {
      if (Lower(at->second) != "100-continue") return End::kRefuses;
    }
    const size_t wishes = headers.count("connection") + headers.count("proxy-connection");
    if (wishes > 1) return End::kEither;
    taken.keeps = !is_1_0_;
    if (wishes == 1) {
      const bool is_ours = headers.count("connection") == 1;
      const std::string wish =
          Lower(headers.find(is_ours ? "connection" : "proxy-connection")->second);
      if (wish != "close" && wish != "keep-alive") return End::kEither;
      taken.keeps = wish == "keep-alive";
    }
    return std::nullopt;
  }

  std::optional<End> Body(const std::multimap<std::string, std::string>& headers, Taken& taken) {
    const auto length = headers.find("content-length");
    if (length != headers.end()) return Sized(length->second, taken);
    const auto encoding = headers.find("transfer-encoding");
    if (encoding == headers.end()) return std::nullopt;
    if (Lower(encoding->second) != "chunked") return End::kRefuses;
    for (int chunks = 0;; ++chunks) {
      const size_t line_end = rest_.find_first_of("\r\n");
      const std::string digits = rest_.substr(0, line_end);
      const bool is_hex = digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
      // Leading zeros and a line that cannot come right any more: refused now or when it is whole.
      if (!is_hex || digits.size() > 8) return End::kEither;
      if (line_end == std::string::npos || rest_.size() == line_end + 1) return End::kWaits;
      // A lone LF may pass for a size that goes on, until its CR LF comes and it is refused.
      if (rest_[line_end] == '\n') return End::kEither;
      if (digits.empty() || rest_.compare(line_end, 2, "\r\n") != 0) return End::kRefuses;
      const size_t size = std::stoul(digits, nullptr, 16);
      rest_.erase(0, line_end + 2);
      if (size == 0) return Trailer();
      taken.body += rest_.substr(0, size);
      if (taken.body.size() - std::min(size, rest_.size()) + size > limits_.max_body_bytes ||
          chunks >= limits_.max_chunks) {
        return End::kRefuses;
      }
      // The end of a chunk is read with the beginning of the next one.
      if (rest_.size() < size + 4) return End::kEither;
      if (rest_.compare(size, 2, "\r\n") != 0) return End::kRefuses;
      rest_.erase(0, size + 2);
    }
  }

  std::optional<End> Sized(const std::string& text, Taken& taken) {
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    if (!is_number || text.size() > 18) return End::kRefuses;
    const size_t size = std::stoull(text);
    if (size > limits_.max_body_bytes) return End::kRefuses;
    if (rest_.size() < size) return End::kWaits;
    taken.body = rest_.substr(0, size);
    rest_.erase(0, size);
    return std::nullopt;
  }

  std::optional<End> Trailer() {
    if (rest_.rfind("\r\n", 0) != 0) return End::kEither;
    rest_.erase(0, 2);
    return std::nullopt;
  }

  std::string rest_;
  const HttpLimits limits_;
  bool is_1_0_ = false;
};

}  // namespace hearth::http_twin
