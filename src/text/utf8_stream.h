// SPDX-License-Identifier: Apache-2.0
// Bytes of tokens -> text for people. Tokens may end within a code point; text may not.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

// Passes valid UTF-8 through, holds back a code point that is not complete yet (at most 3 bytes),
// and puts one U+FFFD for every longest beginning of a code point that can no longer become one,
// as the Unicode standard recommends. What comes out does not depend on how the bytes were cut.
// Thread: one at a time.
class Utf8Stream {
 public:
  void Append(std::string_view bytes, std::string& out);
  // No more bytes follow: what is held back is invalid after all. Ready for a new text afterwards.
  void Finish(std::string& out);
  size_t held_bytes() const { return held_.size(); }

 private:
  std::string held_;  // a proper beginning of one code point, or empty
};

}  // namespace hearth
