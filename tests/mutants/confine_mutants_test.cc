// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in what a server gives up must be noticed by children that try what is
// forbidden.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "app/model_files.h"
#include "confine/confine.h"
#include "testing/mutants.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/confine and
// patches/files.
struct Bug {
  int number;
  const char* what;
  bool needs_root;
};
constexpr Bug kBugs[] = {
    {310, "root's rights stay", true},
    {311, "a program that is started gets root's rights back", true},
    {312, "the right to low ports stays", true},
    {313, "the process above may trace others", false},
    {314, "the process above may enter namespaces", false},
    {315, "only the thread that asks is confined", false},
    {316, "who lists a folder reads it", false},
    {317, "all GGUF files beside a model are its own", false},
    {318, "all files of a folder are its model's", false},
};

// What `child` found wrong in a process of its own; 0: nothing.
int InChild(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return 99;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

bool IsRoot() { return ::geteuid() == 0 && ::prctl(PR_CAPBSET_READ, CAP_SETPCAP, 0, 0, 0) == 1; }

bool Opens(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool MayTakeOthersFile(const testing::TempDir& dir) {
  return ::chown(dir.Path("file").c_str(), 12345, 12345) == 0;
}

bool MayListenLow() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const bool may = ::prctl(PR_CAPBSET_READ, CAP_NET_BIND_SERVICE, 0, 0, 0) == 1;
  ::close(fd);
  return may;
}

std::string RootsRights() {
  if (!IsRoot()) return "";
  const testing::TempDir dir;
  dir.Write("file", "x");
  const int wrong = InChild([&] {
    if (!DropCapabilities(KeptCapabilities::kNone).ok()) return 1;
    if (MayTakeOthersFile(dir)) return 2;
    if (::prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0) return 3;
    return MayListenLow() ? 4 : 0;
  });
  return wrong == 0 ? "" : "root's rights: " + std::to_string(wrong);
}

std::string ProcessAbove() {
  const int wrong = InChild([] {
    if (!RestrictSupervisorCalls().ok()) return 1;
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) return 2;
    const long child = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0);
    if (child == 0) ::_exit(0);
    return child > 0 || errno != EPERM ? 3 : 0;
  });
  return wrong == 0 ? "" : "the process above: " + std::to_string(wrong);
}

std::string EveryThread() {
  const int wrong = InChild([] {
    std::atomic<bool> is_confined = false;
    std::atomic<int> opened = -1;
    std::thread other([&] {
      while (!is_confined) std::this_thread::yield();
      opened = ::socket(AF_INET, SOCK_STREAM, 0);
    });
    const bool is_done = RestrictCalls({}).ok();
    is_confined = true;
    other.join();
    return is_done && opened == -1 ? 0 : 1;
  });
  return wrong == 0 ? "" : "a thread that was there before is not confined";
}

std::string Listing() {
  const testing::TempDir dir;
  dir.Write("own", "x").Write("other", "x");
  const int wrong = InChild([&] {
    const Status status =
        RestrictFiles({{dir.path(), FileUse::kList}, {dir.Path("own"), FileUse::kRead}});
    if (!status.ok()) return status.code() == Code::kUnsupported ? 0 : 1;
    return Opens(dir.Path("own")) && !Opens(dir.Path("other")) ? 0 : 2;
  });
  return wrong == 0 ? "" : "a folder that may be listed: " + std::to_string(wrong);
}

std::string OwnFiles() {
  const testing::TempDir dir;
  dir.Write("a-00001-of-00002.gguf", "").Write("a-00002-of-00002.gguf", "").Write("b.gguf", "");
  dir.Write("folder/config.json", "").Write("folder/key.pem", "").Write("folder/x.safetensors", "");
  for (const std::string& file : ModelFilesOf(dir.Path("a-00001-of-00002.gguf")).files) {
    if (file.ends_with("b.gguf")) return "a neighbour is a model's own file";
  }
  const ModelFiles folder = ModelFilesOf(dir.Path("folder"));
  return folder.files.size() == 2 ? "" : "a folder's other files are its model's";
}

std::string AllChecks() {
  for (const auto& check : {RootsRights, ProcessAbove, EveryThread, Listing, OwnFiles}) {
    if (std::string wrong = check(); !wrong.empty()) return wrong;
  }
  return "";
}

TEST(ConfineMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(ConfineMutants, EachIsNoticed) {
  for (const Bug& bug : kBugs) {
    if (bug.needs_root && !IsRoot()) {
      std::fprintf(stderr, "SKIPPED: mutant %d is seen by root alone\n", bug.number);
      continue;
    }
    EXPECT_EQ(testing::RunMutant(bug.number, AllChecks), MutantFate::kReported)
        << "mutant " << bug.number << ": " << bug.what;
  }
}

}  // namespace
}  // namespace hearth
