// SPDX-License-Identifier: Apache-2.0
// The client's half of HTTP/1.1, as much as a load driver needs: a request as bytes, an answer from
// bytes. Written apart from src/http on purpose: a mistake there must not be read back as right.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

std::string PostBytes(std::string_view path, std::string_view json);
std::string GetBytes(std::string_view path);

// A streamed completion of `answer_tokens` greedy tokens, whatever they are.
std::string CompletionBody(const std::vector<int>& prompt, int answer_tokens);

// One answer, fed in pieces. Bodies with a length or in chunks.
class AnswerReader {
 public:
  void Feed(std::string_view bytes);
  bool has_begun() const { return has_begun_; }
  bool is_done() const { return state_ == State::kDone; }
  bool is_broken() const { return state_ == State::kBroken; }
  int status() const { return status_; }
  double retry_after_s() const { return retry_after_s_; }  // below 0: none
  bool keeps_alive() const { return keeps_alive_; }
  const std::string& body() const { return body_; }

 private:
  enum class State : uint8_t { kHead, kLength, kChunkSize, kChunk, kChunkEnd, kDone, kBroken };
  void ReadHead(std::string_view head);
  void ReadHeader(std::string_view name, std::string_view value);
  bool Advance();  // false: more bytes are needed

  State state_ = State::kHead;
  bool has_begun_ = false, is_chunked_ = false, keeps_alive_ = true;
  int status_ = 0;
  double retry_after_s_ = -1;
  size_t left_ = 0;  // of the body or of a chunk
  std::string rest_, body_;
};

// What a streamed completion came to.
struct StreamText {
  uint64_t hash = 0;  // of all its text, however it was cut into events
  int completion_tokens = -1;
  bool has_end = false;    // [DONE]
  bool has_error = false;  // an error event
};
StreamText ReadStream(std::string_view body);

}  // namespace hearth
