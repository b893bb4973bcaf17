// SPDX-License-Identifier: Apache-2.0
// Where messages are typed: a line with editing, history and pastes of many lines, by libedit; or
// the terminal's own line for screen readers and terminals that cannot do more.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

struct ReadLine {
  enum class Kind : unsigned char {
    kText,
    kInterrupted,  // Ctrl-C: what was typed is given up
    kEnd           // Ctrl-D on an empty line, or the terminal is gone
  };
  Kind kind = Kind::kEnd;
  std::string text{};     // without its end of line
  bool was_empty = true;  // kInterrupted: nothing had been typed
};

// Thread: one.
class LineReader {
 public:
  virtual ~LineReader() = default;
  // Waits. CatchInterrupts was called before.
  virtual ReadLine Read(const std::string& prompt) = 0;
  // For the keys that go back to what was typed before.
  virtual void Remember(const std::string& line) = 0;
};

// stdin is a terminal, and so is `out_fd`; UseUtf8 was called before. kIo when libedit gives up.
Result<std::unique_ptr<LineReader>> NewLineEditor(int out_fd,
                                                  const std::vector<std::string>& history);
// No cursor movement and no history.
std::unique_ptr<LineReader> NewPlainLineReader(int out_fd);

// Keys typed during a reply are kept for the next line and not shown amid the reply. Restores the
// terminal when it goes. Does nothing where stdin is no terminal.
class QuietKeys {
 public:
  QuietKeys();
  ~QuietKeys();
  QuietKeys(const QuietKeys&) = delete;
  QuietKeys& operator=(const QuietKeys&) = delete;

 private:
  bool was_echoing_ = false;
};

// Pastes that a line shows by a name instead of all their text. Thread: one.
class Pastes {
 public:
  // What the line shows for this paste: the text itself while it is short.
  std::string Shown(std::string text);
  // The line with the texts in place of their names.
  std::string Expanded(std::string line) const;
  void Forget() { texts_.clear(); }

 private:
  std::vector<std::pair<std::string, std::string>> texts_;  // name, text
};

}  // namespace hearth
