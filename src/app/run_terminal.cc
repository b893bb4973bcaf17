// SPDX-License-Identifier: Apache-2.0
#include "app/run_terminal.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/terminal.h"
#include "talk/interrupts.h"
#include "talk/transcript.h"
#include "top/screen.h"

namespace hearth {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] != '\0';
}

// A terminal that can at least move its cursor.
bool IsAble() {
  const char* term = std::getenv("TERM");
  return term != nullptr && term[0] != '\0' && std::strcmp(term, "dumb") != 0;
}

ViewKind KindOf(bool is_plain) {
  ViewKind kind;
  kind.is_terminal = isatty(STDOUT_FILENO) != 0;
  kind.moves_cursor = kind.is_terminal && !is_plain;
  kind.has_styles = kind.moves_cursor && !IsSet("NO_COLOR");
  return kind;
}

bool IsInput() {
  struct stat about{};
  if (fstat(STDIN_FILENO, &about) != 0) return false;
  return S_ISREG(about.st_mode) || S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode);
}

}  // namespace

Result<std::optional<std::string>> ReadInput(bool has_prompt) {
  if (isatty(STDIN_FILENO) != 0) return std::optional<std::string>();
  if (!IsInput()) return has_prompt ? std::optional<std::string>() : std::optional<std::string>("");
  constexpr int kSilentMs = 2000;
  std::string text;
  bool has_asked = false;
  while (true) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (!has_asked && text.empty() && poll(&input, 1, kSilentMs) == 0) {
      PrintError("hearth: waiting for standard input to end; </dev/null gives it none\n");
      has_asked = true;
    }
    std::array<char, 65536> bytes{};
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error(Code::kIo, "standard input: %s", std::strerror(errno));
    if (count == 0) break;
    text.append(bytes.data(), static_cast<size_t>(count));
    if (text.size() > kMaxAttachedBytes) {
      return Error(Code::kExhausted, "standard input has more than %zu bytes", kMaxAttachedBytes);
    }
  }
  HEARTH_TRY(CheckText("standard input", text));
  return std::optional<std::string>(std::move(text));
}

RunTerminal::RunTerminal(bool is_plain)
    : is_plain_(is_plain || !IsAble()),
      kind_(KindOf(is_plain_)),
      has_dim_notes_(isatty(STDERR_FILENO) != 0 && !is_plain_ && !IsSet("NO_COLOR")),
      view_(
          kind_, [this](std::string_view bytes) { Write(bytes); },
          [this] {
            const auto passed = std::chrono::steady_clock::now() - start_;
            return std::chrono::duration<double>(passed).count();
          },
          [] { return TerminalSize().columns; }) {}

SessionPlaces RunTerminal::places() {
  const auto figures = [this](const std::string& text) {
    if (kind_.is_terminal && isatty(STDERR_FILENO) != 0) Note(text);
  };
  return {view_, [this](const std::string& text) { Note(text); }, figures, Interrupted()};
}

void RunTerminal::Write(std::string_view bytes) {
  while (!bytes.empty() && !is_gone_) {
    const ssize_t count = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      // Who has seen enough of a reply closes the pipe: that is no mistake.
      if (errno != EPIPE) {
        status_ = Error(Code::kIo, "cannot write the reply: %s", std::strerror(errno));
      }
      is_gone_ = true;
      Interrupted() = true;
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string RunTerminal::Dim(const std::string& text) const {
  return has_dim_notes_ ? Styled(text, {.is_dim = true}) : text;
}

void RunTerminal::Note(const std::string& text) {
  if (is_gone_ || text.empty()) return;
  const std::string line = text.substr(0, text.find_last_not_of('\n') + 1);
  PrintCodes(stderr, Dim(ForTerminal(line)) + "\n");
}

Status RunTerminal::OpenLines(bool keeps_history) {
  const int out = kind_.is_terminal ? STDOUT_FILENO : STDERR_FILENO;
  if (is_plain_ || isatty(out) == 0) {
    lines_ = NewPlainLineReader(out);
    return Status();
  }
  history_ = HistoryFile::Open(keeps_history ? UsualHistoryPath() : "");
  HEARTH_ASSIGN(lines_, NewLineEditor(out, history_->entries()));
  return Status();
}

std::optional<std::string> RunTerminal::ReadQuoted(const std::string& first) {
  std::string text = first.substr(kQuotes.size());
  while (!text.ends_with(kQuotes)) {
    const ReadLine line = lines_->Read(". ");
    if (line.kind != ReadLine::Kind::kText) return std::nullopt;
    text += "\n" + line.text;
  }
  text.resize(text.size() - kQuotes.size());
  return text;
}

std::optional<TypedLine> RunTerminal::NextLine() {
  if (is_gone_) return std::nullopt;
  Interrupted() = false;
  if (IsEndAsked()) return std::nullopt;
  const ReadLine line = lines_->Read("> ");
  if (line.kind == ReadLine::Kind::kEnd) return std::nullopt;
  if (line.kind == ReadLine::Kind::kInterrupted) {
    if (was_interrupted_ && line.was_empty) return std::nullopt;
    was_interrupted_ = line.was_empty;
    if (line.was_empty) Note("Ctrl-C again ends; so do Ctrl-D and /bye");
    return TypedLine{};
  }
  was_interrupted_ = false;
  if (!line.text.starts_with(kQuotes)) {
    if (!line.text.empty() && line.text.size() <= HistoryFile::kMaxEntryBytes && history_) {
      lines_->Remember(line.text);
      const Status kept = history_->Add(line.text);
      if (!kept.ok()) Note(kept.message());
    }
    return ReadTyped(line.text);
  }
  const std::optional<std::string> quoted = ReadQuoted(line.text);
  if (!quoted || quoted->empty()) return TypedLine{};
  return TypedLine{TypedLine::Kind::kMessage, *quoted, ""};
}

}  // namespace hearth
