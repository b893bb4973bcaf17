// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <sys/ioctl.h>

#include <cstdarg>
#include <cstdint>
#include <cstdlib>

#include "base/ascii.h"
#include "base/mask_secrets.h"
#include "base/result.h"
#include "base/utf8.h"

namespace hearth {
namespace {

bool IsObeyed(uint32_t code) {
  if (code < 0x80) return IsControl(static_cast<char>(code)) && code != '\n' && code != '\t';
  return code < 0xa0 || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// What terminals obey is written by `spell`, which also gets each byte that is no character.
template <class Spell>
std::string Disarmed(std::string_view text, const Spell& spell) {
  std::string out;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const Utf8Char found = DecodeUtf8(at, end);
    const bool is_character = found.num_bytes > 0;
    if (is_character && !IsObeyed(found.code_point)) {
      out.append(at, static_cast<size_t>(found.num_bytes));
    } else {
      out += spell(is_character ? found.code_point : static_cast<unsigned char>(*at), is_character);
    }
    at += is_character ? found.num_bytes : 1;
  }
  return out;
}

}  // namespace

std::string ForTerminal(std::string_view text) {
  return Disarmed(text, [](uint32_t code, bool) {
    return code < 0x100 ? Printf("\\x%02x", code) : Printf("\\u{%04x}", code);
  });
}

// In JSON such characters stand inside strings alone, and a carriage return between values.
std::string JsonForTerminal(std::string_view json) {
  return Disarmed(json, [](uint32_t code, bool is_character) {
    if (code == '\r') return std::string(" ");
    return is_character ? Printf("\\u%04x", code) : std::string("\\ufffd");
  });
}

void PrintOut(std::string_view text) {
  const std::string safe = ForTerminal(text);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

void PrintError(const char* format, ...) {
  va_list args;
  va_start(args, format);
  char* line = nullptr;
  const int length = vasprintf(&line, format, args);
  va_end(args);
  if (length < 0) return;  // no memory: the line is lost, not the program
  const std::string text = ForTerminal(MaskSecrets({line, static_cast<size_t>(length)}));
  std::free(line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void PrintCodes(std::FILE* to, std::string_view codes) {
  std::fwrite(codes.data(), 1, codes.size(), to);
}

int TerminalColumns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace hearth
