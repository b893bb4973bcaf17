// SPDX-License-Identifier: Apache-2.0
#include "server/wire.h"

#include <algorithm>
#include <charconv>

#include "base/result.h"

namespace hearth {
namespace {

uint64_t Mixed(uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// The JSON string that begins at `from`, still escaped.
std::string_view QuotedAt(std::string_view line, size_t from) {
  size_t end = from;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  return line.substr(from, end - from);
}

}  // namespace

std::string PostBytes(std::string_view path, std::string_view json) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: " +
         std::to_string(json.size()) + "\r\n\r\n" + std::string(json);
}

std::string GetBytes(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nhost: localhost\r\n\r\n";
}

std::string CompletionBody(const std::vector<int>& prompt, int answer_tokens) {
  std::string ids;
  for (const int id : prompt) ids += (ids.empty() ? "" : ",") + std::to_string(id);
  return Printf(R"({"prompt":[%s],"max_tokens":%d,"temperature":0,"ignore_eos":true,"stream":true,)"
                R"("stream_options":{"include_usage":true}})",
                ids.c_str(), answer_tokens);
}

void AnswerReader::Feed(std::string_view bytes) {
  has_begun_ = has_begun_ || !bytes.empty();
  rest_ += bytes;
  while (Advance()) {
  }
}

bool AnswerReader::Advance() {
  const auto take = [&](size_t count) {
    count = std::min(count, rest_.size());
    body_.append(rest_, 0, count);
    rest_.erase(0, count);
    left_ -= count;
    return left_ == 0;
  };
  switch (state_) {
    case State::kHead: {
      const size_t end = rest_.find("\r\n\r\n");
      if (end == std::string::npos) return false;
      ReadHead(std::string_view(rest_).substr(0, end + 2));
      rest_.erase(0, end + 4);
      return state_ != State::kBroken;
    }
    case State::kLength:
      if (!take(left_)) return false;
      state_ = State::kDone;
      return false;
    case State::kChunkSize: {
      const size_t end = rest_.find("\r\n");
      if (end == std::string::npos) return false;
      const auto read = std::from_chars(rest_.data(), rest_.data() + end, left_, 16);
      state_ = read.ptr == rest_.data() + end && end > 0 ? State::kChunk : State::kBroken;
      rest_.erase(0, end + 2);
      if (left_ == 0 && state_ == State::kChunk) state_ = State::kChunkEnd;
      is_chunked_ = left_ > 0;  // false: this chunk is the last
      return state_ != State::kBroken;
    }
    case State::kChunk:
      if (!take(left_)) return false;
      state_ = State::kChunkEnd;
      return true;
    case State::kChunkEnd:
      if (rest_.size() < 2) return false;
      state_ = !rest_.starts_with("\r\n") ? State::kBroken
               : is_chunked_              ? State::kChunkSize
                                          : State::kDone;
      rest_.erase(0, 2);
      return state_ == State::kChunkSize;
    case State::kDone:
    case State::kBroken:
      break;
  }
  return false;
}

void AnswerReader::ReadHead(std::string_view head) {
  state_ = State::kLength;
  const bool is_http = head.starts_with("HTTP/1.1 ") && head.size() >= 12;
  if (is_http) std::from_chars(head.data() + 9, head.data() + 12, status_);
  if (status_ < 100) state_ = State::kBroken;
  size_t from = head.find("\r\n");
  while (from + 2 < head.size()) {
    const size_t to = head.find("\r\n", from + 2);
    const std::string_view line = head.substr(from + 2, to - from - 2);
    const size_t colon = line.find(": ");
    if (colon != line.npos) ReadHeader(Lower(line.substr(0, colon)), line.substr(colon + 2));
    from = to;
  }
  if (state_ == State::kLength && is_chunked_) state_ = State::kChunkSize;
}

void AnswerReader::ReadHeader(std::string_view name, std::string_view value) {
  if (name == "content-length") std::from_chars(value.data(), value.data() + value.size(), left_);
  if (name == "transfer-encoding") is_chunked_ = value == "chunked";
  if (name == "connection" && value == "close") keeps_alive_ = false;
  if (name == "retry-after") {
    int seconds = -1;
    std::from_chars(value.data(), value.data() + value.size(), seconds);
    retry_after_s_ = seconds;
  }
}

StreamText ReadStream(std::string_view body) {
  constexpr std::string_view kText = "\"text\":\"", kCount = "\"completion_tokens\":";
  StreamText out;
  out.hash = 0xcbf29ce484222325ULL;
  while (!body.empty()) {
    const std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(std::min(body.size(), line.size() + 1));
    if (!line.starts_with("data: ")) continue;
    if (line.starts_with("data: [DONE]")) out.has_end = true;
    if (line.find("\"error\":") != line.npos) out.has_error = true;
    const size_t text = line.find(kText), count = line.find(kCount);
    if (text != line.npos) out.hash = Mixed(out.hash, QuotedAt(line, text + kText.size()));
    if (count == line.npos) continue;
    std::from_chars(line.data() + count + kCount.size(), line.data() + line.size(),
                    out.completion_tokens);
  }
  return out;
}

}  // namespace hearth
