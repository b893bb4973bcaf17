// SPDX-License-Identifier: Apache-2.0
// Confinement by the kernel, in children that try what is forbidden.
#include "confine/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

// What `child` answers in a process of its own: 0 when all was as it must be, else the number of
// the check that failed. The address sanitizer's own end would need calls that are refused.
int InChild(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

constexpr int kUnavailable = 77;

bool Opens(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool IsRefused(long result, int with) { return result == -1 && errno == with; }

TEST(Confine, OnlyNamedFilesCanBeOpened) {
  const testing::TempDir dir;
  dir.Write("model/a.gguf", "x").Write("secret/shadow", "x").Write("state/db", "x");
  dir.Write("log/log", "x");
  const int failed = InChild([&] {
    const int before = ::open(dir.Path("secret/shadow").c_str(), O_RDONLY);
    const Status status = RestrictFiles({{dir.Path("model"), FileUse::kRead},
                                         {dir.Path("state"), FileUse::kWrite},
                                         {dir.Path("log"), FileUse::kAppend},
                                         {dir.Path("none"), FileUse::kRead}});
    if (status.code() == Code::kUnsupported) return kUnavailable;
    if (!status.ok()) return 1;
    if (!Opens(dir.Path("model/a.gguf"), O_RDONLY)) return 2;
    if (Opens(dir.Path("model/a.gguf"), O_RDWR)) return 3;
    if (Opens(dir.Path("model/b"), O_RDWR | O_CREAT)) return 4;
    if (Opens(dir.Path("secret/shadow"), O_RDONLY)) return 5;
    if (Opens("/etc/passwd", O_RDONLY)) return 6;
    if (!Opens(dir.Path("state/new"), O_RDWR | O_CREAT)) return 7;
    if (::rename(dir.Path("state/new").c_str(), dir.Path("state/old").c_str()) != 0) return 8;
    if (::unlink(dir.Path("state/old").c_str()) != 0) return 9;
    if (::truncate(dir.Path("state/db").c_str(), 0) != 0) return 10;
    if (::unlink(dir.Path("secret/shadow").c_str()) == 0) return 11;
    char byte = 0;
    if (::read(before, &byte, 1) != 1) return 12;  // what is open stays open
    ::execl("/bin/true", "true", nullptr);
    if (errno != EACCES) return 13;
    if (!Opens(dir.Path("log/new"), O_WRONLY | O_CREAT | O_APPEND)) return 14;
    if (Opens(dir.Path("log/log"), O_RDONLY)) return 15;
    return 0;
  });
  if (failed == kUnavailable) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(failed, 0);
}

TEST(Confine, SocketsCanBeMadeAndRemovedWhereNothingElseCan) {
  const testing::TempDir dir;
  const int failed = InChild([&] {
    const Status status = RestrictFiles({{dir.path(), FileUse::kSocket}});
    if (status.code() == Code::kUnsupported) return kUnavailable;
    if (::mknod(dir.Path("s").c_str(), S_IFSOCK | 0600, 0) != 0) return 1;
    if (::unlink(dir.Path("s").c_str()) != 0) return 2;
    if (Opens(dir.Path("f"), O_RDWR | O_CREAT)) return 3;
    return Opens(dir.path(), O_RDONLY | O_DIRECTORY) ? 0 : 4;
  });
  if (failed == kUnavailable) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(failed, 0);
}

TEST(Confine, AFolderCanBeListedWithoutBeingRead) {
  const testing::TempDir dir;
  dir.Write("own", "x").Write("other", "x");
  const int failed = InChild([&] {
    const Status status =
        RestrictFiles({{dir.path(), FileUse::kList}, {dir.Path("own"), FileUse::kRead}});
    if (status.code() == Code::kUnsupported) return kUnavailable;
    if (!Opens(dir.path(), O_RDONLY | O_DIRECTORY)) return 1;
    if (!Opens(dir.Path("own"), O_RDONLY)) return 2;
    return Opens(dir.Path("other"), O_RDONLY) ? 3 : 0;
  });
  if (failed == kUnavailable) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(failed, 0);
}

// Of the thread that confines and of one that was there before.
int TryForbiddenCalls() {
  char* const arguments[] = {nullptr};
  if (!IsRefused(::execve("/bin/true", arguments, arguments), EPERM)) return 1;
  if (!IsRefused(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr), EPERM)) return 2;
  if (!IsRefused(::fork(), EPERM)) return 3;
  if (!IsRefused(::socket(AF_INET, SOCK_STREAM, 0), EPERM)) return 4;
  if (!IsRefused(::kill(::getppid(), 0), EPERM)) return 5;
  if (::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
      MAP_FAILED) {
    return 6;
  }
  if (!IsRefused(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), EPERM)) return 7;
  if (!IsRefused(::setuid(0), EPERM)) return 8;
  return 0;
}

int TryAllowedCalls() {
  int pipe[2];
  if (::pipe(pipe) != 0 || ::write(pipe[1], "a", 1) != 1) return 20;
  if (::kill(::getpid(), 0) != 0) return 21;
  void* const memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 22;
  std::atomic<bool> ran = false;
  std::thread([&ran] { ran = true; }).join();
  return ran ? 0 : 23;
}

TEST(Confine, OnlyWhatServingNeedsCanBeCalled) {
  const int failed = InChild([] {
    std::atomic<bool> confined = false;
    std::atomic<int> of_other = -1;
    std::thread other([&] {
      while (!confined) std::this_thread::yield();
      of_other = TryForbiddenCalls();
    });
    const Status status = RestrictCalls({});
    confined = true;
    other.join();
    if (status.code() == Code::kUnsupported) return kUnavailable;
    if (!status.ok()) return 30;
    if (of_other != 0) return 40 + of_other;
    if (const int own = TryForbiddenCalls(); own != 0) return own;
    return TryAllowedCalls();
  });
  if (failed == kUnavailable) GTEST_SKIP() << "this kernel has no seccomp";
  EXPECT_EQ(failed, 0);
}

// What the supervisor does to its workers, and what it has no business with.
int TryCallsAbove() {
  const pid_t child = ::fork();
  if (child == 0) {
    // A worker: it loads libraries, hides and confines itself further.
    if (::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
        MAP_FAILED) {
      ::_exit(50);
    }
    if (!HideProcess().ok() || !RestrictCalls({}).ok()) ::_exit(51);
    ::_exit(IsRefused(::fork(), EPERM) ? 0 : 52);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 53;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  const pid_t other = ::fork();
  if (other == 0) {
    char* const arguments[] = {nullptr};
    ::execve("/bin/true", arguments, arguments);
    ::_exit(errno == EPERM ? 54 : 0);
  }
  if (::waitpid(other, &status, 0) != other || WEXITSTATUS(status) != 0) return 54;
  if (::kill(::getpid(), 0) != 0) return 55;
  if (!IsRefused(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr), EPERM)) return 56;
  if (!IsRefused(::mount("none", "/", nullptr, MS_REMOUNT, nullptr), EPERM)) return 57;
  if (!IsRefused(::unshare(CLONE_NEWUSER), EPERM)) return 58;
  if (!IsRefused(::setuid(0), EPERM)) return 59;
  return IsRefused(::chroot("/"), EPERM) ? 0 : 60;
}

TEST(Confine, TheProcessAboveStartsServersAndLittleElse) {
  const int failed = InChild([] {
    const Status status = RestrictSupervisorCalls();
    if (status.code() == Code::kUnsupported) return kUnavailable;
    return status.ok() ? TryCallsAbove() : 30;
  });
  if (failed == kUnavailable) GTEST_SKIP() << "this kernel has no seccomp";
  EXPECT_EQ(failed, 0);
}

// The number after "CapEff:" and the like.
uint64_t SetOf(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoull(line.substr(line.find('\t')), nullptr, 16);
  }
  return ~uint64_t{0};
}

constexpr uint64_t kLowPort = uint64_t{1} << CAP_NET_BIND_SERVICE;

TEST(Confine, RootGivesUpItsRights) {
  if (::geteuid() != 0 || SetOf("CapEff:") == 0) GTEST_SKIP() << "run by root, it would have some";
  const testing::TempDir dir;
  dir.Write("of-another", "x");
  EXPECT_EQ(::chown(dir.Path("of-another").c_str(), 12345, 12345), 0);
  EXPECT_EQ(::chmod(dir.Path("of-another").c_str(), 0600), 0);
  const int failed = InChild([&] {
    if (!Opens(dir.Path("of-another"), O_RDONLY)) return 1;
    if (!DropCapabilities(KeptCapabilities::kLowPorts).ok()) return 2;
    if (SetOf("CapEff:") != kLowPort || SetOf("CapPrm:") != kLowPort) return 3;
    if (!DropCapabilities(KeptCapabilities::kNone).ok()) return 4;
    for (const char* set : {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"}) {
      if (SetOf(set) != 0) return 5;
    }
    if ((SetOf("CapBnd:") & ~kLowPort) != 0) return 6;
    if (Opens(dir.Path("of-another"), O_RDONLY)) return 7;
    return DropCapabilities(KeptCapabilities::kNone).ok() ? 0 : 8;
  });
  EXPECT_EQ(failed, 0);
}

TEST(Confine, NobodyLooksIntoAHiddenProcess) {
  const int failed = InChild([] {
    if (!HideProcess().ok()) return 1;
    if (::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) return 2;
    return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 3;
  });
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace hearth
