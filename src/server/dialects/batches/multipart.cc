// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/batches/multipart.h"

#include <algorithm>

#include "base/ascii.h"

namespace hearth {
namespace {

constexpr size_t kMaxParts = 16, kMaxHead = size_t{4} << 10, kMaxBoundary = 70;

Status Malformed(const char* what) {
  return Error(Code::kInvalid, "malformed multipart body: %s", what);
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// A value of `a; name="value"; other=value`; quotes may hide `\"`.
std::string Parameter(std::string_view header, std::string_view wanted) {
  size_t at = header.find(';');
  while (at != std::string_view::npos) {
    const size_t equals = header.find('=', at);
    if (equals == std::string_view::npos) return "";
    const std::string name = LowerAscii(Trimmed(header.substr(at + 1, equals - at - 1)));
    std::string value;
    size_t end = equals + 1;
    if (end < header.size() && header[end] == '"') {
      for (++end; end < header.size() && header[end] != '"'; ++end) {
        if (header[end] == '\\' && end + 1 < header.size()) ++end;
        value += header[end];
      }
      end = header.find(';', end);
    } else {
      end = header.find(';', end);
      value = Trimmed(header.substr(equals + 1, end - equals - 1));
    }
    if (name == wanted) return value;
    at = end;
  }
  return "";
}

Status ReadHead(std::string_view head, FormPart& part) {
  while (!head.empty()) {
    const size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    // A backslash in quotes could otherwise bring a line's end into a file's name.
    const auto is_refused = [](char c) { return IsControl(c) && c != '\t'; };
    if (std::ranges::any_of(line, is_refused)) return Malformed("a control character in a head");
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Malformed("a header without a colon");
    const std::string name = LowerAscii(line.substr(0, colon));
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (name == "content-disposition") {
      part.name = Parameter(value, "name");
      part.filename = Parameter(value, "filename");
    }
    if (name == "content-transfer-encoding" && LowerAscii(value) != "binary" &&
        LowerAscii(value) != "7bit" && LowerAscii(value) != "8bit") {
      return Malformed("a part in another encoding");
    }
  }
  return part.name.empty() ? Malformed("a part without a name") : Status();
}

}  // namespace

Result<std::vector<FormPart>> ParseForm(std::string_view type, std::string_view body) {
  if (LowerAscii(Trimmed(type.substr(0, type.find(';')))) != "multipart/form-data") {
    return Error(Code::kInvalid, "the header content-type must be multipart/form-data");
  }
  const std::string boundary = Parameter(type, "boundary");
  if (boundary.empty() || boundary.size() > kMaxBoundary) return Malformed("no boundary");
  const std::string opening = "--" + boundary, separator = "\r\n" + opening;
  if (!body.starts_with(opening)) return Malformed("it does not begin with its boundary");
  body.remove_prefix(opening.size());
  std::vector<FormPart> parts;
  // Behind a boundary: "--" is the end, a line's end begins a part.
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) return Malformed("a boundary that does not end its line");
    if (parts.size() == kMaxParts) return Malformed("more than 16 parts");
    body.remove_prefix(2);
    const size_t head_end = body.substr(0, kMaxHead).find("\r\n\r\n");
    if (head_end == std::string_view::npos) return Malformed("a part's head without its end");
    FormPart part;
    HEARTH_TRY(ReadHead(body.substr(0, head_end), part));
    body.remove_prefix(head_end + 4);
    // A part without content may end with its head's empty line.
    const size_t end = body.find(separator);
    if (end == std::string_view::npos) return Malformed("the last boundary is missing");
    part.content = body.substr(0, end);
    body.remove_prefix(end + separator.size());
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace hearth
