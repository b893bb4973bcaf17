// SPDX-License-Identifier: Apache-2.0
#include "talk/markdown.h"

#include <algorithm>

namespace hearth {
namespace {

// A mark whose other half is further away than this is a mark no more: the text must go on.
constexpr size_t kMaxHeld = 2048;
constexpr std::string_view kMarks = "*_`\\";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n'; }
// Bytes of other scripts are letters here: `snake_case` has no emphasis in any of them.
bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

size_t RunOf(std::string_view text, size_t at, char c) {
  size_t end = at;
  while (end < text.size() && text[end] == c) ++end;
  return end - at;
}

// Where the run of exactly `length` ticks is that closes a code span; npos when there is none. A
// run at the end may still grow unless the text is whole.
size_t FindTicks(std::string_view text, size_t from, size_t length, bool is_whole) {
  for (size_t at = text.find('`', from); at < text.size(); at = text.find('`', at)) {
    const size_t run = RunOf(text, at, '`');
    if (run == length && (is_whole || at + run < text.size())) return at;
    at += run;
  }
  return std::string_view::npos;
}

// Where emphasis of `length` marks closes. Marks inside code or behind a backslash do not count.
size_t FindEmphasisEnd(std::string_view text, size_t length, char mark, bool is_whole) {
  size_t at = length;
  while (at < text.size()) {
    if (text[at] == '\\') {
      at += 2;
      continue;
    }
    if (text[at] == '`') {
      const size_t run = RunOf(text, at, '`');
      const size_t end = FindTicks(text, at + run, run, is_whole);
      // Ticks that may still find their other half would take the marks between them.
      if (end == std::string_view::npos && !is_whole) return end;
      at = end == std::string_view::npos ? at + run : end + run;
      continue;
    }
    if (text[at] != mark) {
      ++at;
      continue;
    }
    const size_t run = RunOf(text, at, mark);
    const size_t after = at + run;
    if (after == text.size() && !is_whole) return std::string_view::npos;
    const bool closes =
        !IsSpace(text[at - 1]) && (mark == '*' || after == text.size() || !IsWord(text[after]));
    // `***` closes two at once: the inner one's marks come first.
    const bool fits = run == length || run == 3;
    if (closes && fits && at > length) return after - length;
    at = after;
  }
  return std::string_view::npos;
}

class Inline {
 public:
  Inline(const MarkdownStyle& style, bool is_whole, std::string& out)
      : style_(style), is_whole_(is_whole), out_(out) {}

  // Shows the beginning of `text` up to what cannot be decided yet; returns how much that was.
  // `last` is the byte before it.
  size_t Show(std::string_view text, char& last) {
    size_t done = 0;
    while (done < text.size()) {
      const std::string_view rest = text.substr(done);
      const size_t plain = std::min(rest.find_first_of(kMarks), rest.size());
      if (plain > 0) {
        Put(rest.substr(0, plain), last);
        done += plain;
        continue;
      }
      const size_t taken = Mark(rest, last);
      if (taken == 0) return done;
      done += taken;
    }
    return done;
  }

 private:
  void Put(std::string_view text, char& last) {
    if (text.empty()) return;
    out_ += Styled(text, style_);
    last = text.back();
  }
  size_t Literal(std::string_view text, size_t length, char& last) {
    Put(text.substr(0, length), last);
    return length;
  }
  size_t Mark(std::string_view text, char& last) {
    if (text[0] == '\\') return Escape(text, last);
    const size_t run = RunOf(text, 0, text[0]);
    if (run == text.size() && !is_whole_) return 0;  // the run may still grow
    return text[0] == '`' ? Code(text, run, last) : Emphasis(text, run, last);
  }
  size_t Escape(std::string_view text, char& last) {
    if (text.size() == 1 && !is_whole_) return 0;
    const bool escapes = text.size() > 1 && kMarks.find(text[1]) != std::string_view::npos;
    if (!escapes) return Literal(text, 1, last);
    Put(text.substr(1, 1), last);
    return 2;
  }
  size_t Code(std::string_view text, size_t run, char& last) {
    const size_t end = FindTicks(text, run, run, is_whole_);
    if (end > kMaxHeld) return Undecided(text, run, last);
    MarkdownStyle style = style_;
    style.is_code = true;
    out_ += Styled(text.substr(run, end - run), style);
    last = '`';
    return end + run;
  }
  size_t Emphasis(std::string_view text, size_t run, char& last) {
    const bool opens =
        run <= 3 && run < text.size() && !IsSpace(text[run]) && (text[0] == '*' || !IsWord(last));
    if (!opens) return Literal(text, run, last);
    const size_t end = FindEmphasisEnd(text, run, text[0], is_whole_);
    if (end > kMaxHeld) return Undecided(text, run, last);
    MarkdownStyle style = style_;
    style.is_bold = style.is_bold || run >= 2;
    style.is_italic = style.is_italic || run != 2;
    Inline inner(style, true, out_);
    last = text[0];
    inner.Show(text.substr(run, end - run), last);
    last = text[0];
    return end + run;
  }
  // Waits for the other half, or shows the mark when none can come.
  size_t Undecided(std::string_view text, size_t run, char& last) {
    // The longest mark after the last place where it would still count.
    if (is_whole_ || text.size() > kMaxHeld + 4) return Literal(text, run, last);
    return 0;
  }

  const MarkdownStyle style_;
  const bool is_whole_;
  std::string& out_;
};

}  // namespace

std::string Styled(std::string_view text, const MarkdownStyle& style) {
  if (text.empty() || style == MarkdownStyle{}) return std::string(text);
  std::string codes;
  const auto add = [&](bool is_on, const char* code) {
    if (is_on) codes += (codes.empty() ? "" : ";") + std::string(code);
  };
  add(style.is_bold, "1");
  add(style.is_dim, "2");
  add(style.is_italic, "3");
  add(style.is_code, "36");
  return "\x1b[" + codes + "m" + std::string(text) + "\x1b[0m";
}

MarkdownStream::Start MarkdownStream::StartOf(std::string_view text, bool is_whole) const {
  const size_t spaces = std::min(text.find_first_not_of(" \t"), text.size());
  const Start unknown{is_whole || spaces > 64 ? Line::kPlain : Line::kUnknown, 0};
  const Start plain{Line::kPlain, 0};
  if (spaces == text.size()) return unknown;
  const std::string_view rest = text.substr(spaces);
  const size_t run = RunOf(rest, 0, rest[0]);
  const bool ends = run == rest.size();
  const bool has_space = !ends && IsSpace(rest[run]);
  switch (rest[0]) {
    case '`':
    case '~':
      if (ends && !is_whole) return unknown;
      return run >= 3 ? Start{Line::kFence, spaces + run} : plain;
    case '#':
      if (ends) return run <= 6 ? unknown : plain;
      return run <= 6 && has_space ? Start{Line::kHeading, spaces + run} : plain;
    case '-':
    case '+':
    case '*':
      if (ends) return run == 1 ? unknown : plain;
      return run == 1 && has_space ? Start{Line::kBullet, spaces + 1} : plain;
    case '>':
      return {Line::kQuote, spaces + 1};
    default:
      return plain;
  }
}

void MarkdownStream::Emit(std::string_view text, std::string& out) const {
  out += Styled(text, style_);
}

void MarkdownStream::BeginFence(size_t spaces, size_t length) {
  fence_ = held_[spaces];
  fence_length_ = length - spaces;
  is_verbatim_ = true;
  style_.is_dim = true;
}

void MarkdownStream::BeginLine(const Start& start, std::string& out) {
  is_at_start_ = false;
  const size_t spaces = held_.find_first_not_of(" \t");
  if (start.line == Line::kFence) return BeginFence(spaces, start.length);
  const std::string mark = held_.substr(0, start.length);
  if (start.line == Line::kHeading || start.line == Line::kQuote) {
    out += Styled(mark, {.is_dim = true});
    style_.is_bold = start.line == Line::kHeading;
    style_.is_italic = start.line == Line::kQuote;
  }
  if (start.line == Line::kBullet) out += mark.substr(0, spaces) + bullet_;
  if (start.length > 0) last_ = ' ';
  held_.erase(0, start.length);
}

void MarkdownStream::EndLine() {
  if (closes_) fence_ = 0;
  closes_ = false;
  is_verbatim_ = false;
  is_at_start_ = true;
  style_ = {};
  last_ = '\n';
}

bool MarkdownStream::ClosesFence(std::string_view line) const {
  const size_t spaces = std::min(line.find_first_not_of(' '), line.size());
  const size_t run = RunOf(line, spaces, fence_);
  return run >= fence_length_ &&
         line.find_first_not_of(" \t", spaces + run) == std::string_view::npos;
}

// Inside a block of code nothing is a mark but the line that ends it.
void MarkdownStream::TakeFenced(bool is_whole, std::string& out) {
  if (is_at_start_) {
    const size_t spaces = std::min(held_.find_first_not_of(' '), held_.size());
    const size_t run = RunOf(held_, spaces, fence_);
    const bool may_close = held_.find_first_not_of(" \t", spaces + run) == std::string::npos;
    if (may_close && !is_whole && held_.size() <= kMaxHeld) return;
    closes_ = is_whole && ClosesFence(held_);
    is_at_start_ = false;
  }
  const MarkdownStyle style{.is_code = !closes_, .is_dim = closes_};
  out += Styled(held_, style);
  held_.clear();
}

void MarkdownStream::Take(bool is_whole, std::string& out) {
  if (fence_ != 0 && !is_verbatim_) return TakeFenced(is_whole, out);
  if (is_at_start_) {
    if (held_.empty()) return;
    const Start start = StartOf(held_, is_whole);
    if (start.line == Line::kUnknown) return;
    BeginLine(start, out);
  }
  if (is_verbatim_) {
    Emit(held_, out);
    held_.clear();
    return;
  }
  held_.erase(0, Inline(style_, is_whole, out).Show(held_, last_));
}

std::string MarkdownStream::Feed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    held_ += text.substr(0, end);
    const bool is_line = end != std::string_view::npos;
    Take(is_line, out);
    if (!is_line) return out;
    out += '\n';
    EndLine();
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string MarkdownStream::Finish() {
  std::string out;
  Take(true, out);
  EndLine();
  fence_ = 0;
  return out;
}

}  // namespace hearth
