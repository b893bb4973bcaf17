// SPDX-License-Identifier: Apache-2.0
// The filter's program, run by a small interpreter of our own: what the kernel would answer.
#include "confine/call_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

namespace hearth {
namespace {

constexpr pid_t kSelf = 4711;
constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kRefuse = SECCOMP_RET_ERRNO | EPERM,
                   kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

uint32_t Run(const std::vector<sock_filter>& steps, const seccomp_data& data) {
  uint32_t loaded = 0;
  for (size_t at = 0; at < steps.size(); ++at) {
    const sock_filter& step = steps[at];
    bool is_true = false;
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        EXPECT_LE(step.k + sizeof loaded, sizeof data);
        std::memcpy(&loaded, reinterpret_cast<const char*>(&data) + step.k, sizeof loaded);
        continue;
      case BPF_RET | BPF_K:
        return step.k;
      case BPF_JMP | BPF_JEQ | BPF_K:
        is_true = loaded == step.k;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        is_true = loaded > step.k;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        is_true = (loaded & step.k) != 0;
        break;
      default:
        ADD_FAILURE() << "a step that the program should not need: " << step.code;
        return 0;
    }
    at += is_true ? step.jt : step.jf;
  }
  ADD_FAILURE() << "no answer";
  return 0;
}

// `argument` is at the place that the rules look at.
uint32_t Ask(long call, int place = 0, uint64_t argument = 0, const CallRules& rules = {},
             uint32_t architecture = AUDIT_ARCH_X86_64) {
  static const auto plain = CallFilter({}, kSelf), open = CallFilter({.may_connect = true}, kSelf);
  seccomp_data data{};
  data.nr = static_cast<int>(call);
  data.arch = architecture;
  data.args[place] = argument;
  return Run(rules.may_connect ? open : plain, data);
}

TEST(CallFilter, AllowsWhatServingNeeds) {
  for (const long call : {SYS_read, SYS_openat, SYS_epoll_wait, SYS_accept4, SYS_futex, SYS_brk,
                          SYS_rt_sigtimedwait, SYS_exit_group, SYS_sendmsg, SYS_getegid}) {
    EXPECT_EQ(Ask(call), kAllow) << call;
  }
}

TEST(CallFilter, RefusesWhatItDoesNot) {
  for (const long call : {SYS_execve,
                          SYS_execveat,
                          SYS_fork,
                          SYS_vfork,
                          SYS_ptrace,
                          SYS_process_vm_readv,
                          SYS_process_vm_writev,
                          SYS_connect,
                          SYS_bind,
                          SYS_listen,
                          SYS_mount,
                          SYS_unshare,
                          SYS_setns,
                          SYS_setuid,
                          SYS_bpf,
                          SYS_io_uring_setup,
                          SYS_perf_event_open,
                          SYS_userfaultfd,
                          SYS_open_by_handle_at,
                          SYS_keyctl,
                          SYS_init_module,
                          SYS_chmod,
                          SYS_chroot,
                          SYS_pidfd_open,
                          SYS_reboot,
                          SYS_symlink}) {
    EXPECT_EQ(Ask(call), kRefuse) << call;
  }
  EXPECT_EQ(Ask(SYS_clone3), kUnknown) << "so that glibc falls back on clone";
  EXPECT_EQ(Ask(452), kUnknown) << "younger than this list";
  EXPECT_EQ(Ask(0x40000000 | SYS_read), kRefuse) << "x32";
  EXPECT_EQ(Ask(SYS_read, 0, 0, {}, AUDIT_ARCH_I386), kRefuse);
}

TEST(CallFilter, LooksAtArguments) {
  EXPECT_EQ(Ask(SYS_clone, 0, CLONE_VM | CLONE_THREAD), kAllow);
  EXPECT_EQ(Ask(SYS_clone, 0, CLONE_VM), kRefuse);
  EXPECT_EQ(Ask(SYS_mmap, 2, PROT_READ | PROT_WRITE), kAllow);
  EXPECT_EQ(Ask(SYS_mmap, 2, PROT_READ | PROT_EXEC), kRefuse);
  EXPECT_EQ(Ask(SYS_mprotect, 2, PROT_READ), kAllow);
  EXPECT_EQ(Ask(SYS_mprotect, 2, PROT_EXEC), kRefuse);
  EXPECT_EQ(Ask(SYS_kill, 0, kSelf), kAllow);
  EXPECT_EQ(Ask(SYS_kill, 0, 1), kRefuse);
  EXPECT_EQ(Ask(SYS_kill, 0, static_cast<uint64_t>(-1)), kRefuse);
  EXPECT_EQ(Ask(SYS_tgkill, 0, kSelf), kAllow);
  EXPECT_EQ(Ask(SYS_tgkill, 0, kSelf + 1), kRefuse);
  EXPECT_EQ(Ask(SYS_prlimit64, 0, 0), kAllow);
  EXPECT_EQ(Ask(SYS_prlimit64, 0, 1), kRefuse);
  EXPECT_EQ(Ask(SYS_ioctl, 1, FIONBIO), kAllow);
  EXPECT_EQ(Ask(SYS_ioctl, 1, TIOCSTI), kRefuse);
  EXPECT_EQ(Ask(SYS_prctl, 0, PR_SET_NAME), kAllow);
  EXPECT_EQ(Ask(SYS_prctl, 0, PR_SET_DUMPABLE), kRefuse);
  EXPECT_EQ(Ask(SYS_socket, 0, AF_UNIX), kAllow);
  EXPECT_EQ(Ask(SYS_socket, 0, AF_INET), kRefuse);
}

uint32_t AskAbove(long call, int place = 0, uint64_t argument = 0) {
  static const auto above = SupervisorCallFilter();
  seccomp_data data{};
  data.nr = static_cast<int>(call);
  data.arch = AUDIT_ARCH_X86_64;
  data.args[place] = argument;
  return Run(above, data);
}

TEST(CallFilter, AboveTheServerProcessesCanBeStarted) {
  for (const long call :
       {SYS_execve, SYS_fork, SYS_kill, SYS_wait4, SYS_mmap, SYS_connect, SYS_bind, SYS_listen,
        SYS_seccomp, SYS_landlock_restrict_self, SYS_capset}) {
    EXPECT_EQ(AskAbove(call), kAllow) << call;
  }
  EXPECT_EQ(AskAbove(SYS_mmap, 2, PROT_READ | PROT_EXEC), kAllow) << "libraries of the server";
  EXPECT_EQ(AskAbove(SYS_clone, 0, CLONE_VM | SIGCHLD), kAllow);
  EXPECT_EQ(AskAbove(SYS_socket, 0, AF_INET), kAllow);
  EXPECT_EQ(AskAbove(SYS_prctl, 0, PR_SET_PDEATHSIG), kAllow);
}

TEST(CallFilter, AboveTheServerTheRestIsRefusedToo) {
  for (const long call :
       {SYS_ptrace, SYS_process_vm_readv, SYS_mount, SYS_unshare, SYS_setns, SYS_setuid, SYS_bpf,
        SYS_io_uring_setup, SYS_perf_event_open, SYS_userfaultfd, SYS_open_by_handle_at, SYS_keyctl,
        SYS_init_module, SYS_chroot, SYS_pivot_root, SYS_pidfd_getfd, SYS_reboot, SYS_chown}) {
    EXPECT_EQ(AskAbove(call), kRefuse) << call;
  }
  EXPECT_EQ(AskAbove(SYS_clone, 0, CLONE_NEWUSER | SIGCHLD), kRefuse);
  EXPECT_EQ(AskAbove(SYS_clone3), kUnknown);
  EXPECT_EQ(AskAbove(SYS_ioctl, 1, TIOCSTI), kRefuse);
  EXPECT_EQ(AskAbove(SYS_socket, 0, AF_PACKET), kRefuse);
  EXPECT_EQ(AskAbove(SYS_prctl, 0, PR_SET_MM), kRefuse);
}

TEST(CallFilter, ConnectsWhereThatIsAskedFor) {
  const CallRules open{.may_connect = true};
  EXPECT_EQ(Ask(SYS_connect, 0, 0, open), kAllow);
  EXPECT_EQ(Ask(SYS_socket, 0, AF_INET6, open), kAllow);
  EXPECT_EQ(Ask(SYS_socket, 0, AF_PACKET, open), kRefuse);
  EXPECT_EQ(Ask(SYS_listen, 0, 0, open), kRefuse);
  EXPECT_EQ(Ask(SYS_execve, 0, 0, open), kRefuse);
}

}  // namespace
}  // namespace hearth
