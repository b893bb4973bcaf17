// SPDX-License-Identifier: Apache-2.0
// The line editor on libedit. Its characters come through our own function, because a chat must
// hear signals while it waits for them.
#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cwchar>

#include "base/terminal.h"
#include "base/utf8.h"
#include "talk/columns.h"
#include "talk/interrupts.h"
#include "talk/line_reader.h"
#include "talk/slash.h"

namespace hearth {
namespace {

// Between these two marks of the terminal a paste comes.
constexpr const char* kPastesOn = "\x1b[?2004h";
constexpr const char* kPastesOff = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr size_t kMaxPaste = size_t{16} << 20;  // characters
constexpr wchar_t kReplacement = 0xfffd;

class LineEditor : public LineReader {
 public:
  ~LineEditor() override {
    if (editor_ != nullptr) el_end(editor_);
    if (history_ != nullptr) history_end(history_);
    if (out_ != nullptr) std::fclose(out_);
  }

  Status Open(int out_fd, const std::vector<std::string>& lines) {
    out_ = fdopen(dup(out_fd), "w");
    if (out_ != nullptr) editor_ = el_init("hearth", stdin, out_, stderr);
    history_ = history_init();
    if (editor_ == nullptr || history_ == nullptr) {
      return Error(Code::kIo, "the line editor cannot use this terminal; try --plain");
    }
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    for (const std::string& line : lines) Remember(line);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &LineEditor::Prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_wset(editor_, EL_GETCFN, &LineEditor::NextCharacter);
    BindKeys();
    return Status();
  }

  ReadLine Read(const std::string& prompt) override {
    prompt_ = prompt;
    pastes_.Forget();
    if (TakeTerminalNews().is_resized) el_resize(editor_);
    columns_ = TerminalColumns(STDIN_FILENO);
    std::fputs(kPastesOn, out_);
    std::fflush(out_);
    int count = 0;
    const char* typed = el_gets(editor_, &count);
    std::string line = typed != nullptr ? std::string(typed, static_cast<size_t>(count)) : "";
    std::fputs(kPastesOff, out_);
    std::fflush(out_);
    if (typed == nullptr) return Stopped();
    if (line.ends_with('\n')) line.pop_back();
    return {ReadLine::Kind::kText, pastes_.Expanded(std::move(line)), false};
  }

  void Remember(const std::string& line) override {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
  }

 private:
  static LineEditor& Self(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<LineEditor*>(self);
  }
  static char* Prompt(EditLine* editor) { return Self(editor).prompt_.data(); }
  static int NextCharacter(EditLine* editor, wchar_t* out) { return Self(editor).Next(out); }
  static unsigned char OnPaste(EditLine* editor, int) { return Self(editor).Paste(); }
  static unsigned char OnNewLine(EditLine* editor, int) {
    el_insertstr(editor, "\n");
    return CC_REFRESH;
  }
  static unsigned char OnTab(EditLine* editor, int) { return Self(editor).Complete(); }

  void BindKeys() {
    el_set(editor_, EL_ADDFN, "hearth-paste", "insert what is pasted", &LineEditor::OnPaste);
    el_set(editor_, EL_ADDFN, "hearth-newline", "begin a new line", &LineEditor::OnNewLine);
    el_set(editor_, EL_ADDFN, "hearth-complete", "complete a command", &LineEditor::OnTab);
    constexpr std::array<std::array<const char*, 2>, 14> kKeys = {{
        {"\\e[200~", "hearth-paste"},
        {"\\e\\n", "hearth-newline"},
        {"\\e\\r", "hearth-newline"},
        {"\\t", "hearth-complete"},
        {"^R", "em-inc-search-prev"},
        {"\\e[H", "ed-move-to-beg"},
        {"\\e[F", "ed-move-to-end"},
        {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},
        {"\\e[3~", "ed-delete-next-char"},
        {"\\e[1;5C", "em-next-word"},
        {"\\e[1;5D", "ed-prev-word"},
        {"\\e[1;3C", "em-next-word"},
        {"\\e[1;3D", "ed-prev-word"},
    }};
    for (const auto& [key, name] : kKeys) el_set(editor_, EL_BIND, key, name, nullptr);
  }

  // Whether the line is given up: Ctrl-C, or the end of the chat.
  bool HearSignals() {
    const TerminalNews news = TakeTerminalNews();
    if (news.is_continued) {  // the shell had the terminal; libedit believes that it still has it
      el_set(editor_, EL_PREP_TERM, 0);
      el_set(editor_, EL_PREP_TERM, 1);
    }
    if (news.is_continued || news.is_resized) {
      // Some terminals wrap old lines anew and some do not: rather leave a row of ours than take
      // one of somebody else's.
      const int rows = RowsAbove();
      el_resize(editor_);
      columns_ = TerminalColumns(STDIN_FILENO);
      Redraw(std::min(rows, RowsAbove()));
    }
    return Interrupted();
  }

  // How many rows of the line are above the cursor's.
  int RowsAbove() const {
    const LineInfo* line = el_line(editor_);
    std::string_view text(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
    int rows = 0, before = ColumnsOf(prompt_);
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      rows += (before + ColumnsOf(text.substr(0, end))) / columns_ + 1;
      text.remove_prefix(end + 1);
      before = 0;
    }
    return rows + (before + ColumnsOf(text)) / columns_;
  }

  // libedit draws the whole line again, from where the cursor is.
  void Redraw(int rows_above) {
    const std::string up = rows_above > 0 ? Printf("\x1b[%dA", rows_above) : "";
    std::fprintf(out_, "\r%s\x1b[J", up.c_str());
    el_set(editor_, EL_REFRESH);
  }

  int NextByte(char* out) {
    while (true) {
      std::array<pollfd, 2> fds = {{{STDIN_FILENO, POLLIN, 0}, {InterruptFd(), POLLIN, 0}}};
      if (Interrupted()) return GiveUp();
      if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return -1;
      if (fds[1].revents != 0 && HearSignals()) continue;
      if (fds[0].revents == 0) continue;
      const ssize_t count = read(STDIN_FILENO, out, 1);
      if (count < 0 && errno == EINTR) continue;
      return static_cast<int>(count);
    }
  }

  // Leaves the cursor behind what was typed, so that the next line does not run into it.
  int GiveUp() {
    const LineInfo* line = el_line(editor_);
    was_empty_ = line->buffer == line->lastchar;
    if (line->cursor != line->lastchar) {
      const int rows = RowsAbove();
      el_cursor(editor_, static_cast<int>(line->lastchar - line->cursor));
      Redraw(rows);
    }
    return -1;
  }

  // As libedit wants it: 1, or 0 at the end, or -1.
  int Next(wchar_t* out) {
    std::array<char, 4> bytes{};
    for (size_t size = 0; size < bytes.size(); ++size) {
      const int got = NextByte(&bytes[size]);
      if (got <= 0) return got;
      const Utf8Char c = DecodeUtf8(bytes.data(), bytes.data() + size + 1);
      if (c.num_bytes == 0 && static_cast<unsigned char>(bytes[0]) >= 0xc2) continue;
      *out = c.num_bytes > 0 ? static_cast<wchar_t>(c.code_point) : kReplacement;
      return 1;
    }
    *out = kReplacement;
    return 1;
  }

  unsigned char Paste() {
    std::wstring text;
    wchar_t c = 0;
    bool is_too_long = false;
    while (!text.ends_with(kPasteEnd)) {
      if (el_wgetc(editor_, &c) != 1) return CC_ERROR;
      text += c == 0 ? kReplacement : c;
      if (text.size() <= kMaxPaste) continue;
      is_too_long = true;
      text.erase(0, text.size() - kPasteEnd.size());
    }
    if (is_too_long) {
      el_insertstr(editor_, "[left out: a paste of more than 16 million characters; try /file]");
      return CC_REFRESH_BEEP;
    }
    text.resize(text.size() - kPasteEnd.size());
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool is_return = text[i] == L'\r';
      if (is_return && i + 1 < text.size() && text[i + 1] == L'\n') continue;
      AppendUtf8(is_return ? '\n' : static_cast<uint32_t>(text[i]), bytes);
    }
    if (bytes.ends_with('\n')) bytes.pop_back();  // what is sent is for the Enter key to say
    el_insertstr(editor_, pastes_.Shown(std::move(bytes)).c_str());
    return CC_REFRESH;
  }

  unsigned char Complete() {
    const LineInfo* line = el_line(editor_);
    const std::string typed(line->buffer, line->cursor);
    const std::vector<std::string> found = CommandsStartingWith(typed);
    if (typed.empty() || found.empty()) return CC_REFRESH_BEEP;
    std::string common = found[0];
    for (const std::string& name : found) {
      const auto end = std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first;
      common.erase(end, common.end());
    }
    if (found.size() == 1) common += ' ';
    if (common.size() == typed.size()) return CC_REFRESH_BEEP;
    el_insertstr(editor_, common.c_str() + typed.size());
    return CC_REFRESH;
  }

  ReadLine Stopped() {
    const bool is_interrupt = Interrupted() && !IsEndAsked();
    std::fputs(is_interrupt ? "^C\n" : "\n", out_);
    std::fflush(out_);
    if (!is_interrupt) return {};
    return {ReadLine::Kind::kInterrupted, "", was_empty_};
  }

  FILE* out_ = nullptr;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  Pastes pastes_;
  int columns_ = 80;
  bool was_empty_ = true;  // the line that was given up
};

}  // namespace

Result<std::unique_ptr<LineReader>> NewLineEditor(int out_fd,
                                                  const std::vector<std::string>& lines) {
  auto editor = std::make_unique<LineEditor>();
  HEARTH_TRY(editor->Open(out_fd, lines));
  return std::unique_ptr<LineReader>(std::move(editor));
}

}  // namespace hearth
