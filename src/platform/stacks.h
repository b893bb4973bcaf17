// SPDX-License-Identifier: Apache-2.0
// What the threads of this process are doing, written where nothing else works any more.
#pragma once
namespace hearth {

// Before the threads start. From now on a process that dies of SIGSEGV, SIGBUS, SIGABRT, SIGFPE or
// SIGILL first writes its stack to stderr. SIGBUS is what becomes of a mapped file that was
// shortened: it says so in words and ends the process with `exit_on_bus_error`. Whoever
// handles one of the others already, as sanitizers do, goes on doing so.
void InstallCrashReports(int exit_on_bus_error);

// The stack of every thread, one after the other; a thread that does not answer in time is named.
// Needs InstallCrashReports. Thread: one at a time. Waits at most a fifth of a second a thread.
void WriteStacks(int descriptor);

}  // namespace hearth
