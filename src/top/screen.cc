// SPDX-License-Identifier: Apache-2.0
#include "top/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace hearth {
namespace {

// Another screen, without a cursor; and back. The order back undoes the order there.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::array kHeard = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT};

sigset_t Heard() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kHeard) sigaddset(&set, signal);
  return set;
}

Status WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error(Code::kIo, "the terminal: %s", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Status();
}

}  // namespace

ScreenSize TerminalSize() {
  ScreenSize size;
  winsize given{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &given) != 0) return size;
  if (given.ws_col > 0) size.columns = given.ws_col;
  if (given.ws_row > 0) size.rows = given.ws_row;
  return size;
}

Result<std::unique_ptr<TopScreen>> TopScreen::Open() {
  if (isatty(STDOUT_FILENO) == 0)
    return Error(Code::kInvalid, "standard output is not a terminal; use --once or --json");
  std::unique_ptr<TopScreen> screen(new TopScreen());
  const sigset_t heard = Heard();
  pthread_sigmask(SIG_BLOCK, &heard, nullptr);
  screen->signals_ = signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
  if (screen->signals_ < 0) return Error(Code::kIo, "signals: %s", std::strerror(errno));
  screen->fds_.push_back(screen->signals_);
  // In the background of a shell keys are somebody else's, and asking for them would stop us.
  screen->has_keys_ = isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
                      tcgetattr(STDIN_FILENO, &screen->before_) == 0;
  if (screen->has_keys_) screen->fds_.push_back(STDIN_FILENO);
  screen->Enter();
  return screen;
}

TopScreen::~TopScreen() {
  if (signals_ < 0) return;
  Leave();
  close(signals_);
  const sigset_t heard = Heard();
  pthread_sigmask(SIG_UNBLOCK, &heard, nullptr);
}

void TopScreen::Enter() {
  if (has_keys_) {
    termios raw = before_;
    // Ctrl-C and Ctrl-Z come as keys: the screen is put back before anything else happens.
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  is_entered_ = WriteAll(kEnter).ok();
}

void TopScreen::Leave() {
  if (!is_entered_) return;
  is_entered_ = false;
  const Status status = WriteAll(kLeave);
  // Keys that came too late are nobody's command. A terminal that is gone needs neither.
  if (status.ok() && has_keys_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

void TopScreen::Suspend() {
  Leave();
  raise(SIGTSTP);
  Enter();
}

TopScreen::News TopScreen::ReadKeys() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, 0) <= 0) return News::kNone;
  std::array<char, 64> keys{};
  const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) return News::kQuit;  // the terminal is gone
  constexpr char kCtrlC = 3, kCtrlD = 4, kCtrlL = 12, kCtrlZ = 26, kCtrlBackslash = 28;
  for (ssize_t i = 0; i < count; ++i) {
    const char key = keys[static_cast<size_t>(i)];
    if (key == 'q' || key == 'Q' || key == kCtrlC || key == kCtrlD || key == kCtrlBackslash) {
      return News::kQuit;
    }
    if (key == kCtrlZ) Suspend();
    if (key == kCtrlZ || key == kCtrlL) return News::kRedraw;
  }
  return News::kNone;
}

TopScreen::News TopScreen::ReadSignals() {
  News news = News::kNone;
  signalfd_siginfo signal{};
  while (read(signals_, &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
    const auto number = static_cast<int>(signal.ssi_signo);
    if (number != SIGWINCH && number != SIGCONT) return News::kQuit;
    // Stopped from outside, the terminal may have been used by others.
    if (number == SIGCONT && is_entered_) Enter();
    news = News::kRedraw;
  }
  return news;
}

TopScreen::News TopScreen::Read() {
  const News signals = ReadSignals();
  if (signals == News::kQuit || !has_keys_) return signals;
  const News keys = ReadKeys();
  return keys == News::kNone ? signals : keys;
}

Status TopScreen::Show(std::span<const std::string> lines) {
  std::string frame = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    frame += lines[i] + "\x1b[K";
    if (i + 1 < lines.size()) frame += "\r\n";
  }
  return WriteAll(frame + "\x1b[J");
}

}  // namespace hearth
