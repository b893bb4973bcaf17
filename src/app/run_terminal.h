// SPDX-License-Identifier: Apache-2.0
// The terminal, file or pipe that `hearth run` talks to: where replies and notes go, and where
// messages come from.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "talk/history_file.h"
#include "talk/line_reader.h"
#include "talk/reply_view.h"
#include "talk/session.h"
#include "talk/slash.h"
namespace hearth {

// All of stdin, when it is a file or a pipe; none when it is a terminal or there is nothing to
// read. Says on stderr what it waits for when nothing comes. kInvalid: not UTF-8, or too large.
Result<std::optional<std::string>> ReadInput(bool has_prompt);

// Thread: one.
class RunTerminal {
 public:
  // `is_plain`: as for a screen reader, whatever the terminal can do.
  explicit RunTerminal(bool is_plain);
  bool is_terminal() const { return kind_.is_terminal; }
  SessionPlaces places();
  // Lines of the program's own, on stderr.
  void Note(const std::string& text);
  // An error once replies cannot be written any more; a reader who went away is none.
  Status status() const { return status_; }

  Status OpenLines(bool keeps_history);
  // What was typed next; none: the chat is over.
  std::optional<TypedLine> NextLine();
  // Does something while typed keys are not shown.
  template <class Work>
  auto Quietly(const Work& work) {
    const QuietKeys quiet;
    return work();
  }

 private:
  void Write(std::string_view bytes);
  std::string Dim(const std::string& text) const;
  // The lines up to the closing quotes; none when the reader gave up.
  std::optional<std::string> ReadQuoted(const std::string& first);

  const bool is_plain_;
  ViewKind kind_;
  bool has_dim_notes_ = false;
  Status status_;
  bool is_gone_ = false;  // nobody reads stdout any more
  bool was_interrupted_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  ReplyView view_;
  std::unique_ptr<LineReader> lines_;
  std::optional<HistoryFile> history_;
};

}  // namespace hearth
