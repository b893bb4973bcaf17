// SPDX-License-Identifier: Apache-2.0
#include "http_answer.h"

#include <cstdlib>

namespace hearth::testing {

std::string_view HttpAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

size_t AnswerReader::ParseChunks(size_t at, HttpAnswer& answer) {
  while (true) {
    const size_t line = bytes_.find("\r\n", at);
    if (line == bytes_.npos) return at;
    char* end = nullptr;
    const size_t size = std::strtoul(bytes_.c_str() + at, &end, 16);
    if (end != bytes_.c_str() + line) failure_ = "a chunk without a size";
    const size_t next = line + 2 + size + 2;
    if (bytes_.size() < next) {
      answer.body += bytes_.substr(line + 2, size);
      return bytes_.size();
    }
    if (bytes_.compare(next - 2, 2, "\r\n") != 0) failure_ = "a chunk without an end";
    answer.body += bytes_.substr(line + 2, size);
    at = next;
    if (size > 0) continue;
    answer.is_whole = true;
    return at;
  }
}

size_t AnswerReader::Parse(HttpAnswer& answer) {
  const size_t end = bytes_.find("\r\n\r\n");
  if (end == bytes_.npos) return 0;
  if (!bytes_.starts_with("HTTP/1.1 ")) failure_ = "no status line: " + bytes_.substr(0, 60);
  answer.status = std::atoi(bytes_.c_str() + 9);
  for (size_t at = bytes_.find("\r\n") + 2; at < end + 2;) {
    const size_t line = bytes_.find("\r\n", at);
    const size_t colon = bytes_.find(": ", at);
    if (colon == bytes_.npos || colon > line) {
      failure_ = "a header without a name";
      break;
    }
    answer.headers.emplace_back(bytes_.substr(at, colon - at),
                                bytes_.substr(colon + 2, line - colon - 2));
    at = line + 2;
  }
  if (answer.header("transfer-encoding") == "chunked") return ParseChunks(end + 4, answer);
  const size_t length =
      std::strtoul(std::string(answer.header("content-length")).c_str(), nullptr, 10);
  answer.body = bytes_.substr(end + 4, length);
  answer.is_whole = answer.body.size() == length;
  return end + 4 + answer.body.size();
}

std::optional<HttpAnswer> AnswerReader::Next() {
  // Nothing is looked at twice but the answer that is on its way: those are short.
  HttpAnswer answer;
  const size_t used = Parse(answer);
  if (!answer.is_whole) return std::nullopt;
  bytes_.erase(0, used);
  return answer;
}

HttpAnswer AnswerReader::Part() {
  HttpAnswer answer;
  Parse(answer);
  return answer;
}

}  // namespace hearth::testing
