// SPDX-License-Identifier: Apache-2.0
#include "platform/stacks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hearth {
namespace {

// What a child writes to its stderr, and how it ends.
struct Ended {
  int status = 0;
  std::string text;
};

Ended InChild(const std::function<void()>& work) {
  int out[2];
  EXPECT_EQ(::pipe(out), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], STDERR_FILENO);
    InstallCrashReports(74);
    work();
    ::_exit(0);
  }
  ::close(out[1]);
  Ended ended;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(out[0], buffer, sizeof buffer)) > 0;) {
    ended.text.append(buffer, static_cast<size_t>(got));
  }
  ::close(out[0]);
  EXPECT_EQ(::waitpid(child, &ended.status, 0), child);
  return ended;
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Stacks, EveryThreadTellsWhereItIs) {
  const Ended ended = InChild([] {
    std::atomic<bool> is_over{false};
    std::thread busy([&] {
      while (!is_over) {
      }
    });
    std::thread asleep([&] {
      while (!is_over) ::usleep(1000);
    });
    WriteStacks(STDERR_FILENO);
    is_over = true;
    busy.join();
    asleep.join();
  });
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(CountOf(ended.text, "thread "), 3u) << ended.text;
  EXPECT_EQ(CountOf(ended.text, "does not answer"), 0u) << ended.text;
  EXPECT_GE(CountOf(ended.text, "[0x"), 9u) << ended.text;  // frames
}

TEST(Stacks, AThreadThatBlocksSignalsIsNamed) {
  const Ended ended = InChild([] {
    std::atomic<int> state{0};
    std::thread deaf([&] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      state = 1;
      while (state != 2) ::usleep(1000);
    });
    while (state != 1) ::usleep(1000);
    WriteStacks(STDERR_FILENO);
    state = 2;
    deaf.join();
  });
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(CountOf(ended.text, "does not answer"), 1u) << ended.text;
}

TEST(CrashReports, AFileThatWasShortenedEndsWithWordsAndACode) {
  const Ended ended = InChild([] {
    std::FILE* file = std::tmpfile();
    if (::ftruncate(::fileno(file), 8192) != 0) ::_exit(1);
    void* at = ::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
    if (::ftruncate(::fileno(file), 0) != 0) ::_exit(2);
    ::_exit(static_cast<const volatile char*>(at)[4096]);
  });
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 74) << ended.status;
  EXPECT_NE(ended.text.find("a file in use was shortened"), std::string::npos) << ended.text;
}

TEST(CrashReports, SeveralThreadsAtAShortenedFileEndWithTheCodeToo) {
  const Ended ended = InChild([] {
    std::FILE* file = std::tmpfile();
    constexpr int kThreads = 8;
    if (::ftruncate(::fileno(file), 4096 * kThreads) != 0) ::_exit(1);
    void* at = ::mmap(nullptr, 4096 * kThreads, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
    if (::ftruncate(::fileno(file), 0) != 0) ::_exit(2);
    std::atomic<int> num_ready{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < kThreads; ++i) {
      readers.emplace_back([&num_ready, at, i] {
        for (++num_ready; num_ready < kThreads;) {
        }
        ::_exit(static_cast<const volatile char*>(at)[4096 * i]);
      });
    }
    for (std::thread& reader : readers) reader.join();
  });
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 74) << ended.status;
  EXPECT_EQ(CountOf(ended.text, "a file in use was shortened"), 1u) << ended.text;
}

TEST(CrashReports, ACrashShowsItsStackAndStaysACrash) {
  for (const int signal : {SIGSEGV, SIGABRT}) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_DFL) continue;  // a sanitizer's
    const Ended ended = InChild([signal] { ::raise(signal); });
    EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == signal) << ended.status;
    EXPECT_NE(ended.text.find("hearth: stopped by SIG"), std::string::npos) << ended.text;
    EXPECT_GE(CountOf(ended.text, "[0x"), 2u) << ended.text;
  }
}

}  // namespace
}  // namespace hearth
