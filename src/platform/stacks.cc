// SPDX-License-Identifier: Apache-2.0
#include "platform/stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace hearth {
namespace {

constexpr int kMaxFrames = 64;
// One that libraries leave alone.
int StackSignal() { return SIGRTMIN + 3; }

// Of the one request under way. Plain memory that handlers may touch.
std::atomic<int> g_descriptor{-1};
std::atomic<bool> g_is_done{false};
std::atomic<int> g_bus_exit{1};
std::atomic<int> g_tasks{-1};  // opened early: later the process may be confined

void WriteText(int descriptor, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

// No allocation, no lock: all of it may run in a handler.
void WriteOwnStack(int descriptor) {
  void* frames[kMaxFrames];
  const int count = ::backtrace(frames, kMaxFrames);
  ::backtrace_symbols_fd(frames, count, descriptor);
}

void OnStackAsked(int) {
  const int error = errno;
  WriteOwnStack(g_descriptor);
  g_is_done = true;
  errno = error;
}

std::string_view NameOf(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGBUS";
  }
}

void OnCrash(int signal) {
  if (signal == SIGBUS) {
    // Several threads read the same file: the first one tells and ends the process, the others
    // wait.
    static std::atomic<bool> is_ending{false};
    static_assert(std::atomic<bool>::is_always_lock_free);
    while (is_ending.exchange(true)) ::pause();
    WriteText(STDERR_FILENO,
              "hearth: a file in use was shortened, or its disk cannot be read (SIGBUS): was a "
              "model file changed in place? Stack:\n");
    WriteOwnStack(STDERR_FILENO);
    ::_exit(g_bus_exit);
  }
  WriteText(STDERR_FILENO, "hearth: stopped by ");
  WriteText(STDERR_FILENO, NameOf(signal));
  WriteText(STDERR_FILENO, "; stack:\n");
  WriteOwnStack(STDERR_FILENO);
  ::raise(signal);  // SA_RESETHAND: the second time it is the end
}

void Handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

// True once the thread has written its stack.
bool Ask(pid_t thread) {
  g_is_done = false;
  if (::syscall(SYS_tgkill, ::getpid(), thread, StackSignal()) != 0) return true;  // it has gone
  for (int i = 0; i < 200 && !g_is_done; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return g_is_done;
}

std::string CommOf(pid_t thread) {
  char path[64], name[32] = "";
  std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", static_cast<int>(thread));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t got = ::read(file, name, sizeof name - 1);
  ::close(file);
  return got > 1 ? std::string(name, static_cast<size_t>(got) - 1) : "";
}

}  // namespace

void InstallCrashReports(int exit_on_bus_error) {
  g_bus_exit = exit_on_bus_error;
  void* frames[1];
  ::backtrace(frames, 1);  // loads what it needs now, not in a handler
  if (g_tasks < 0) g_tasks = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  Handle(StackSignal(), OnStackAsked, SA_RESTART);
  Handle(SIGBUS, OnCrash, 0);
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_DFL) Handle(signal, OnCrash, SA_RESETHAND | SA_NODEFER);
  }
}

void WriteStacks(int descriptor) {
  g_descriptor = descriptor;
  const int again = ::fcntl(g_tasks, F_DUPFD_CLOEXEC, 0);
  DIR* tasks = again < 0 ? nullptr : ::fdopendir(again);
  if (tasks == nullptr) {
    WriteText(descriptor, "the threads of this process cannot be listed\n");
    return;
  }
  ::rewinddir(tasks);
  while (const dirent* entry = ::readdir(tasks)) {
    const std::string_view name = entry->d_name;
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec != std::errc()) continue;
    WriteText(descriptor, "thread " + std::string(name) + " (" + CommOf(thread) + "):\n");
    if (!Ask(thread)) WriteText(descriptor, "  does not answer\n");
  }
  ::closedir(tasks);
}

}  // namespace hearth
