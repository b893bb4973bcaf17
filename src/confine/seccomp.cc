// SPDX-License-Identifier: Apache-2.0
// Which system calls a process may make: seccomp, and what keeps other processes out of it.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "confine/call_filter.h"
#include "confine/confine.h"

namespace hearth {

namespace {

Status Restrict(std::vector<sock_filter> steps) {
  if (steps.empty()) return Error(Code::kUnsupported, "seccomp: no list for this processor");
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Error(Code::kUnsupported, "seccomp: no_new_privs: %s", std::strerror(errno));
  }
  // All threads: those that run the model and the sockets are already there.
  const long done =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (done == 0) return Status();
  if (done > 0) return Error(Code::kUnsupported, "seccomp: thread %ld has another filter", done);
  return Error(Code::kUnsupported, "seccomp: %s", std::strerror(errno));
}

}  // namespace

Status RestrictCalls(const CallRules& rules) { return Restrict(CallFilter(rules, ::getpid())); }

Status RestrictSupervisorCalls() { return Restrict(SupervisorCallFilter()); }

Status HideProcess() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    return Status();
  }
  return Error(Code::kUnsupported, "hiding the process: %s", std::strerror(errno));
}

}  // namespace hearth
