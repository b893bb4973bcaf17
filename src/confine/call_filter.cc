// SPDX-License-Identifier: Apache-2.0
#include "confine/call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace hearth {
#if defined(__x86_64__)
namespace {

// Without a look at their arguments. What glibc, SQLite, OpenSSL, Asio and RocksDB are known to
// call; the wire suites run with the filter on. Not here, and so refused: starting programs and
// processes, tracing, sockets and addresses of one's own, mounts, namespaces, identities, keys,
// modules, io_uring, bpf, perf_event_open, userfaultfd, and opening files by handle.
constexpr int kAllowed[] = {
    // Files; which ones is Landlock's to say.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
    SYS_preadv2, SYS_pwritev2, SYS_close, SYS_close_range, SYS_lseek, SYS_open, SYS_openat,
    SYS_openat2, SYS_creat, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_statfs,
    SYS_fstatfs, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat,
    SYS_getdents, SYS_getdents64, SYS_getcwd, SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync,
    SYS_syncfs, SYS_sync_file_range, SYS_ftruncate, SYS_truncate, SYS_fallocate, SYS_fadvise64,
    SYS_readahead, SYS_rename, SYS_renameat, SYS_renameat2, SYS_unlink, SYS_unlinkat, SYS_mkdir,
    SYS_mkdirat, SYS_rmdir, SYS_link, SYS_linkat, SYS_fchmod, SYS_fchown, SYS_umask, SYS_utimensat,
    SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe, SYS_pipe2, SYS_memfd_create, SYS_sendfile,
    SYS_copy_file_range,
    // Waiting.
    SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_create, SYS_epoll_create1,
    SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd, SYS_eventfd2,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_signalfd4,
    // Sockets that are already there.
    SYS_accept, SYS_accept4, SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_setsockopt,
    SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown,
    SYS_socketpair,
    // Memory; mapping it executable is looked at below.
    SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall,
    SYS_munlockall, SYS_msync, SYS_mincore, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy,
    SYS_move_pages, SYS_membarrier,
    // Threads and their processors.
    SYS_futex, SYS_futex_waitv, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq,
    SYS_set_tid_address, SYS_arch_prctl, SYS_exit, SYS_exit_group, SYS_gettid, SYS_getpid,
    SYS_getppid, SYS_getpgrp, SYS_getpgid, SYS_getsid, SYS_getcpu, SYS_sched_yield,
    SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_sched_setscheduler, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
    SYS_sched_getattr, SYS_getpriority, SYS_setpriority, SYS_wait4, SYS_waitid,
    // Signals; to whom is looked at below.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_rt_sigpending,
    SYS_rt_sigsuspend, SYS_sigaltstack, SYS_pause, SYS_restart_syscall,
    // Times, limits, names.
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
    SYS_time, SYS_times, SYS_alarm, SYS_getitimer, SYS_setitimer, SYS_timer_create,
    SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete, SYS_getrusage,
    SYS_getrlimit, SYS_sysinfo, SYS_uname, SYS_getrandom, SYS_getuid, SYS_geteuid, SYS_getgid,
    SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups};

// What the process above a server needs besides, or the server while it starts: programs and
// processes, sockets of its own, modes of files, and confining itself.
constexpr int kAllowedAbove[] = {SYS_execve,
                                 SYS_fork,
                                 SYS_vfork,
                                 SYS_setpgid,
                                 SYS_kill,
                                 SYS_tgkill,
                                 SYS_prlimit64,
                                 SYS_setrlimit,
                                 SYS_bind,
                                 SYS_listen,
                                 SYS_connect,
                                 SYS_chmod,
                                 SYS_fchmodat,
                                 SYS_mmap,
                                 SYS_mprotect,
                                 SYS_seccomp,
                                 SYS_landlock_create_ruleset,
                                 SYS_landlock_add_rule,
                                 SYS_landlock_restrict_self,
                                 SYS_capget,
                                 SYS_capset};

// Calls that came after those we know: libraries try them first and fall back on this answer.
constexpr uint32_t kLastKnown = SYS_futex_waitv + 1;  // set_mempolicy_home_node
constexpr uint32_t kX32 = 0x40000000;                 // another set of numbers for the same kernel

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

// Puts the program together, one block per call. A block that is entered ends in an answer, so the
// call's number stays loaded for the next one.
class Writer {
 public:
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)); }
  void Answer(uint32_t what) { Add(BPF_RET | BPF_K, 0, 0, what); }
  // The next `size` steps are for this value alone.
  void Only(uint32_t value, size_t size) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<uint8_t>(size), value);
  }
  void AnswerIf(uint32_t value, uint32_t what) {
    Only(value, 1);
    Answer(what);
  }
  void AnswerUnless(uint32_t value, uint32_t what) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value);
    Answer(what);
  }
  void AnswerIfAbove(uint32_t value, uint32_t what) {
    Add(BPF_JMP | BPF_JGT | BPF_K, 0, 1, value);
    Answer(what);
  }
  // Whether an argument is among these decides.
  void ArgumentIn(int call, int argument, std::initializer_list<uint32_t> values, bool allows) {
    Only(static_cast<uint32_t>(call), 2 * values.size() + 2);
    Load(PlaceOf(argument));
    for (const uint32_t value : values) AnswerIf(value, allows ? kAllow : kRefuse);
    Answer(allows ? kRefuse : kAllow);
  }
  // Whether it has one of these bits decides.
  void ArgumentHas(int call, int argument, uint32_t bit, bool allows) {
    Only(static_cast<uint32_t>(call), 4);
    Load(PlaceOf(argument));
    Add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, bit);
    Answer(allows ? kAllow : kRefuse);
    Answer(allows ? kRefuse : kAllow);
  }
  std::vector<sock_filter> Take() && { return std::move(steps_); }

 private:
  // The lower half: all arguments that are looked at are ints or flags that have no upper one.
  static size_t PlaceOf(int argument) {
    return offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(argument);
  }
  void Add(int code, uint8_t if_true, uint8_t if_false, uint32_t value) {
    steps_.push_back({static_cast<uint16_t>(code), if_true, if_false, value});
  }
  std::vector<sock_filter> steps_;
};

void WriteArgumentRules(Writer& out, const CallRules& rules, uint32_t self) {
  out.ArgumentHas(SYS_clone, 0, CLONE_THREAD, true);  // a thread, not a process
  out.ArgumentHas(SYS_mmap, 2, PROT_EXEC, false);     // no code but what was linked
  out.ArgumentHas(SYS_mprotect, 2, PROT_EXEC, false);
  out.ArgumentIn(SYS_kill, 0, {self}, true);
  out.ArgumentIn(SYS_tgkill, 0, {self}, true);
  out.ArgumentIn(SYS_prlimit64, 0, {0, self}, true);
  out.ArgumentIn(SYS_ioctl, 1, {TIOCSTI, TIOCLINUX}, false);  // typing into one's terminal
  // Nothing that HideProcess did can be taken back.
  out.ArgumentIn(SYS_prctl, 0,
                 {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_SET_TIMERSLACK, PR_GET_DUMPABLE,
                  PR_SET_PDEATHSIG, PR_CAPBSET_READ},
                 true);
  // The manager's notification socket takes a datagram; a connection it would be for others.
  if (rules.may_connect) {
    out.ArgumentIn(SYS_socket, 0, {AF_UNIX, AF_INET, AF_INET6}, true);
    out.AnswerIf(SYS_connect, kAllow);
    out.AnswerIf(SYS_bind, kAllow);  // to no port of one's own: names of lookups
  } else {
    out.ArgumentIn(SYS_socket, 0, {AF_UNIX}, true);
  }
}

void WriteArgumentRulesAbove(Writer& out) {
  constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  out.ArgumentHas(SYS_clone, 0, kNamespaces, false);
  out.ArgumentIn(SYS_ioctl, 1, {TIOCSTI, TIOCLINUX}, false);
  // Netlink: glibc asks the kernel for the machine's addresses when it looks up names.
  out.ArgumentIn(SYS_socket, 0, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}, true);
  // PR_SET_DUMPABLE: exec makes a process readable again, and it hides itself anew.
  out.ArgumentIn(
      SYS_prctl, 0,
      {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_SET_TIMERSLACK, PR_GET_DUMPABLE, PR_SET_PDEATHSIG,
       PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS,
       PR_SET_SECCOMP, PR_GET_SECCOMP, PR_SET_DUMPABLE},
      true);
}

// What both lists begin with.
void BeginFilter(Writer& out) {
  out.Load(offsetof(seccomp_data, arch));
  out.AnswerUnless(AUDIT_ARCH_X86_64, kRefuse);  // the numbers of 32-bit programs are others
  out.Load(offsetof(seccomp_data, nr));
  out.AnswerIf(SYS_clone3, kUnknown);  // its flags are in memory, which no filter sees
  for (const int call : kAllowed) out.AnswerIf(static_cast<uint32_t>(call), kAllow);
}

std::vector<sock_filter> EndFilter(Writer out) {
  out.AnswerIfAbove(kX32 - 1, kRefuse);
  out.AnswerIfAbove(kLastKnown, kUnknown);
  out.Answer(kRefuse);
  return std::move(out).Take();
}

}  // namespace

std::vector<sock_filter> CallFilter(const CallRules& rules, pid_t self) {
  Writer out;
  BeginFilter(out);
  WriteArgumentRules(out, rules, static_cast<uint32_t>(self));
  return EndFilter(std::move(out));
}

std::vector<sock_filter> SupervisorCallFilter() {
  Writer out;
  BeginFilter(out);
  for (const int call : kAllowedAbove) out.AnswerIf(static_cast<uint32_t>(call), kAllow);
  WriteArgumentRulesAbove(out);
  return EndFilter(std::move(out));
}

#else

std::vector<sock_filter> CallFilter(const CallRules&, pid_t) { return {}; }
std::vector<sock_filter> SupervisorCallFilter() { return {}; }

#endif
}  // namespace hearth
