// SPDX-License-Identifier: Apache-2.0
#include "talk/interrupts.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace hearth {
namespace {

std::atomic<bool> g_interrupted = false, g_end = false, g_resized = false, g_continued = false;
std::atomic<int> g_fd = -1;

// A descriptor and not a flag alone: a signal between looking and waiting would be missed.
void OnSignal(int signal) {
  const int saved = errno;
  if (signal == SIGWINCH) g_resized = true;
  if (signal == SIGCONT) g_continued = true;
  if (signal == SIGTERM || signal == SIGHUP) g_end = true;
  if (signal != SIGWINCH && signal != SIGCONT) g_interrupted = true;
  const uint64_t one = 1;
  const ssize_t ignored = write(g_fd, &one, sizeof(one));
  static_cast<void>(ignored);
  errno = saved;
}

}  // namespace

void CatchInterrupts() {
  g_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT}) {
    sigaction(signal, &action, nullptr);
  }
}

std::atomic<bool>& Interrupted() { return g_interrupted; }
bool IsEndAsked() { return g_end; }
int InterruptFd() { return g_fd; }

TerminalNews TakeTerminalNews() {
  uint64_t count = 0;
  const ssize_t ignored = read(g_fd, &count, sizeof(count));
  static_cast<void>(ignored);
  return {g_resized.exchange(false), g_continued.exchange(false)};
}

}  // namespace hearth
