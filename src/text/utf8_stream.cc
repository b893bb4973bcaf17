// SPDX-License-Identifier: Apache-2.0
#include "text/utf8_stream.h"

#include <cstdint>

#include "base/utf8.h"

namespace hearth {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// How many of the bytes are the beginning of some code point; they are not all of one.
struct Beginning {
  size_t num_bytes = 0;  // 0: not even the first
  bool can_grow = false;
};
Beginning BeginningOf(std::string_view bytes) {
  const auto lead = static_cast<uint8_t>(bytes[0]);
  if (lead < 0xc2 || lead > 0xf4) return {};
  const size_t needed = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte is narrower after four leads: no overlong forms, surrogates, large numbers.
  uint8_t low = 0x80, high = 0xbf;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  size_t count = 1;
  for (; count < needed && count < bytes.size(); ++count, low = 0x80, high = 0xbf) {
    const auto byte = static_cast<uint8_t>(bytes[count]);
    if (byte < low || byte > high) return {count, false};
  }
  return {count, true};
}

// Appends all of `bytes` but a beginning that can still grow; returns how many were used.
size_t AppendComplete(std::string_view bytes, std::string& out) {
  size_t copied = 0, p = 0;
  const auto copy = [&] { out.append(bytes.substr(copied, p - copied)); };
  while (p < bytes.size()) {
    if (static_cast<uint8_t>(bytes[p]) < 0x80) {
      ++p;
      continue;
    }
    const Utf8Char c = DecodeUtf8(bytes.data() + p, bytes.data() + bytes.size());
    if (c.num_bytes > 0) {
      p += static_cast<size_t>(c.num_bytes);
      continue;
    }
    copy();
    const Beginning beginning = BeginningOf(bytes.substr(p));
    if (beginning.can_grow) return p;
    out += kReplacement;
    p += beginning.num_bytes > 0 ? beginning.num_bytes : 1;
    copied = p;
  }
  copy();
  return p;
}

}  // namespace

void Utf8Stream::Append(std::string_view bytes, std::string& out) {
  // One byte at a time until nothing is held: at most three more can be needed.
  while (!held_.empty() && !bytes.empty()) {
    held_ += bytes[0];
    bytes.remove_prefix(1);
    held_.erase(0, AppendComplete(held_, out));
  }
  const size_t used = AppendComplete(bytes, out);
  if (used < bytes.size()) held_ = bytes.substr(used);
}

void Utf8Stream::Finish(std::string& out) {
  if (!held_.empty()) out += kReplacement;
  held_.clear();
}

}  // namespace hearth
