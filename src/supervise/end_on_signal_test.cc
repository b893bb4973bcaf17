// SPDX-License-Identifier: Apache-2.0
#include "supervise/end_on_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace hearth {
namespace {

// How a child ends that does `work`, when it is sent `signal` a moment after it is at it.
int StatusOf(int signal, void (*work)()) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    BlockSignals({SIGINT, SIGTERM});
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    work();
    ::_exit(3);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, signal);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  return status;
}

void Sleep(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(EndOnSignal, EndsAProcessThatIsBusy) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const int status = StatusOf(signal, [] {
      const EndOnSignal watch;
      Sleep(30'000);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
  }
}

TEST(EndOnSignal, LaterSignalsWait) {
  const int status = StatusOf(SIGTERM, [] {
    {
      const EndOnSignal watch;
    }
    Sleep(300);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

}  // namespace
}  // namespace hearth
