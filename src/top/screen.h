// SPDX-License-Identifier: Apache-2.0
// The terminal while `hearth top` owns it: another screen, keys as they are pressed, and everything
// as it was when it goes, by whatever way.
#pragma once
#include <termios.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

struct ScreenSize {
  int columns = 80, rows = 24;
};
// Of the terminal behind stdout; as above when there is none or it does not say.
ScreenSize TerminalSize();

// Thread: one. There is one at a time.
class TopScreen {
 public:
  // kInvalid when stdout is no terminal. Signals that end or resize are heard through it from now
  // on, by this thread only: it is made before others are.
  static Result<std::unique_ptr<TopScreen>> Open();
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  // To be waited for: when one can be read, Read says what came.
  std::span<const int> fds() const { return fds_; }
  enum class News : unsigned char { kNone, kRedraw, kQuit };
  News Read();
  // Status, because a terminal can be gone.
  Status Show(std::span<const std::string> lines);

 private:
  TopScreen() = default;
  void Enter();
  void Leave();
  // Stops the process as Ctrl-Z does elsewhere; returns when it goes on.
  void Suspend();
  News ReadKeys();
  News ReadSignals();

  std::vector<int> fds_;
  int signals_ = -1;       // a descriptor for them
  bool has_keys_ = false;  // stdin is a terminal, and ours
  bool is_entered_ = false;
  termios before_{};
};

}  // namespace hearth
