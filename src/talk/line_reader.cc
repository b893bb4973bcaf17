// SPDX-License-Identifier: Apache-2.0
#include "talk/line_reader.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "talk/interrupts.h"

namespace hearth {
namespace {

class PlainLineReader : public LineReader {
 public:
  explicit PlainLineReader(int out_fd) : out_fd_(out_fd) {}

  ReadLine Read(const std::string& prompt) override {
    if (write(out_fd_, prompt.data(), prompt.size()) < 0) return {};
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        ReadLine line{ReadLine::Kind::kText, buffer_.substr(0, end), false};
        buffer_.erase(0, end + 1);
        return line;
      }
      if (Interrupted()) return GivenUp();
      std::array<pollfd, 2> fds = {{{STDIN_FILENO, POLLIN, 0}, {InterruptFd(), POLLIN, 0}}};
      if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return {};
      TakeTerminalNews();
      if (fds[0].revents == 0 || Interrupted()) continue;
      std::array<char, 4096> bytes{};
      const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return AtEnd();
      buffer_.append(bytes.data(), static_cast<size_t>(count));
    }
  }
  void Remember(const std::string&) override {}

 private:
  ReadLine GivenUp() {
    // What the kernel held of the line is gone already; it does not tell whether there was any.
    buffer_.clear();
    if (write(out_fd_, "\n", 1) < 0 || IsEndAsked()) return {};
    return {ReadLine::Kind::kInterrupted, "", true};
  }
  ReadLine AtEnd() {
    if (buffer_.empty()) return {};
    ReadLine line{ReadLine::Kind::kText, buffer_, false};
    buffer_.clear();
    return line;
  }

  const int out_fd_;
  std::string buffer_;
};

}  // namespace

std::unique_ptr<LineReader> NewPlainLineReader(int out_fd) {
  return std::make_unique<PlainLineReader>(out_fd);
}

QuietKeys::QuietKeys() {
  termios modes{};
  if (isatty(STDIN_FILENO) == 0 || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  was_echoing_ = (modes.c_lflag & ECHO) != 0;
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (was_echoing_) tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

QuietKeys::~QuietKeys() {
  termios modes{};
  if (!was_echoing_ || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  modes.c_lflag |= ECHO;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

std::string Pastes::Shown(std::string text) {
  // What fits well on the smallest of terminals is shown, and can be edited.
  constexpr ptrdiff_t kMaxLines = 8;
  constexpr size_t kMaxBytes = 1000;
  const ptrdiff_t lines = std::count(text.begin(), text.end(), '\n') + 1;
  if (lines <= kMaxLines && text.size() <= kMaxBytes) return text;
  std::string name = Printf("[paste %zu: %td %s, %zu bytes]", texts_.size() + 1, lines,
                            lines == 1 ? "line" : "lines", text.size());
  texts_.emplace_back(name, std::move(text));
  return name;
}

// From left to right, and never inside what was put in: a text may spell another's name.
std::string Pastes::Expanded(std::string line) const {
  std::string out;
  while (true) {
    size_t first = std::string::npos;
    const std::pair<std::string, std::string>* found = nullptr;
    for (const auto& entry : texts_) {
      const size_t at = line.find(entry.first);
      if (at >= first) continue;
      first = at;
      found = &entry;
    }
    if (found == nullptr) return out + line;
    out += line.substr(0, first) + found->second;
    line.erase(0, first + found->first.size());
  }
}

}  // namespace hearth
