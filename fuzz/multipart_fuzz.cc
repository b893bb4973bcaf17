// SPDX-License-Identifier: Apache-2.0
// Bodies of uploads to /v1/files: the first line is the content-type, the rest the body. What is
// read lies within the body, and written out again it is read as the same.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/dialects/batches/multipart.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong) {
  std::fprintf(stderr, "multipart_fuzz: %s\n", wrong);
  std::abort();
}

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// A boundary that no content has.
std::string FreeBoundary(const std::vector<FormPart>& parts) {
  for (int i = 0;; ++i) {
    std::string boundary = "b" + std::to_string(i);
    bool is_free = true;
    for (const FormPart& part : parts) {
      is_free = is_free && part.content.find("--" + boundary) == std::string_view::npos;
    }
    if (is_free) return boundary;
  }
}

void CheckAgain(const std::vector<FormPart>& parts) {
  const std::string boundary = FreeBoundary(parts);
  std::string body;
  size_t head = 0;
  for (const FormPart& part : parts) {
    const std::string disposition = "content-disposition: form-data; name=" + Quote(part.name) +
                                    "; filename=" + Quote(part.filename);
    head = std::max(head, disposition.size());
    body +=
        "--" + boundary + "\r\n" + disposition + "\r\n\r\n" + std::string(part.content) + "\r\n";
  }
  body += "--" + boundary + "--\r\n";
  if (head > 4000) return;  // quoting made it longer than a head may be
  auto again = ParseForm("multipart/form-data; boundary=" + boundary, body);
  if (!again.ok()) Report(again.status().message().c_str());
  if (again->size() != parts.size()) Report("other parts");
  for (size_t i = 0; i < parts.size(); ++i) {
    const FormPart &one = parts[i], &two = (*again)[i];
    if (one.name != two.name || one.filename != two.filename) Report("another name");
    if (one.content != two.content) Report("another content");
  }
}

void CheckForm(std::string_view input) {
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string_view type = input.substr(0, end);
  const std::string_view body = input.substr(std::min(end + 1, input.size()));
  auto parts = ParseForm(type, body);
  if (!parts.ok()) {
    if (parts.status().message().empty()) Report("refused without a word");
    return;
  }
  if (parts->size() > 16) Report("more than 16 parts");
  const char* after = body.data();
  for (const FormPart& part : *parts) {
    if (part.name.empty()) Report("a part without a name");
    if (part.content.data() < after) Report("parts overlap");
    after = part.content.data() + part.content.size();
    if (after > body.data() + body.size()) Report("past the body");
  }
  if (!parts->empty()) CheckAgain(*parts);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::CheckForm({reinterpret_cast<const char*>(data), size});
  return 0;
}
