// SPDX-License-Identifier: Apache-2.0
// Answers as a client finds them in the bytes of its connection, one after the other.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
namespace hearth::testing {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool is_whole = false;
  std::string_view header(std::string_view name) const;
};

// Thread: one. Distrusts what it reads: anything that is no answer is a failure.
class AnswerReader {
 public:
  void Feed(std::string_view bytes) { bytes_ += bytes; }
  // The next one when it is whole.
  std::optional<HttpAnswer> Next();
  // What has come of one that is not whole; status 0 when not even its head is.
  HttpAnswer Part();
  bool has_bytes() const { return !bytes_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  // How many bytes were read; fills `answer` as far as it goes.
  size_t Parse(HttpAnswer& answer);
  size_t ParseChunks(size_t at, HttpAnswer& answer);
  std::string bytes_, failure_;
};

}  // namespace hearth::testing
