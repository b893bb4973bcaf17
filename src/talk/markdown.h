// SPDX-License-Identifier: Apache-2.0
// Markdown to styles of a terminal, while it streams. What cannot be decided yet is held back, at
// most to the end of the line; what turns out to be no Markdown is shown as it was written. No
// character is lost but the marks that became a style.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
namespace hearth {

struct MarkdownStyle {
  bool is_bold = false, is_italic = false, is_code = false, is_dim = false;
  bool operator==(const MarkdownStyle&) const = default;
};

// The text in that style, and back to normal after it: whatever ends the program, no style stays.
std::string Styled(std::string_view text, const MarkdownStyle& style);

// Thread: one.
class MarkdownStream {
 public:
  // `bullet` stands for the mark of a list's item.
  explicit MarkdownStream(std::string bullet = "\xe2\x80\xa2") : bullet_(std::move(bullet)) {}
  // What can be shown now.
  std::string Feed(std::string_view text);
  // The text ends here; ready for another one afterwards.
  std::string Finish();

 private:
  // What the beginning of a line says that the line is.
  enum class Line : unsigned char { kUnknown, kPlain, kFence, kHeading, kBullet, kQuote };
  struct Start {
    Line line = Line::kUnknown;
    size_t length = 0;  // of what says so
  };
  Start StartOf(std::string_view text, bool is_whole) const;
  void BeginLine(const Start& start, std::string& out);
  void BeginFence(size_t spaces, size_t length);
  bool ClosesFence(std::string_view line) const;
  // Each takes what it can from held_, with `is_whole` when nothing more belongs to it.
  void Take(bool is_whole, std::string& out);
  void TakeFenced(bool is_whole, std::string& out);
  void EndLine();
  void Emit(std::string_view text, std::string& out) const;

  const std::string bullet_;
  std::string held_;  // not shown yet; all of one line
  bool is_at_start_ = true;
  char last_ = '\n';          // the last byte shown, which decides what a mark means
  MarkdownStyle style_;       // of the line
  bool is_verbatim_ = false;  // the line shows its marks: it opens or closes a fence
  char fence_ = 0;            // '`' or '~' inside a block of code
  size_t fence_length_ = 0;
  bool closes_ = false;  // the line that is shown closes the block
};

}  // namespace hearth
