// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstdarg>
#include <cstdio>

namespace hearth {
namespace {

std::string VPrintf(const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  HEARTH_CHECK(length >= 0);
  std::string text(static_cast<size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

}  // namespace

Status Error(Code code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = VPrintf(format, args);
  va_end(args);
  return Status(code, std::move(text));
}

std::string Printf(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = VPrintf(format, args);
  va_end(args);
  return text;
}

std::string Quoted(std::string_view bytes) {
  constexpr size_t kMaxShown = 80;
  std::string text = "\"";
  for (const char c : bytes.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      text += c;
    } else {
      text += Printf("\\x%02x", byte);
    }
  }
  text += bytes.size() > kMaxShown ? "\"..." : "\"";
  return text;
}

}  // namespace hearth
