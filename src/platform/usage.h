// SPDX-License-Identifier: Apache-2.0
// What this process holds and uses of the machine, and what others use of it meanwhile.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
namespace hearth {

// Bytes in memory, mapped files included. 0 where /proc does not say.
struct Resident {
  int64_t now = 0;        // VmRSS
  int64_t anonymous = 0;  // RssAnon: what no file could give back
  int64_t peak = 0;       // VmHWM
};
Resident ReadResident();
// From the text of /proc/self/status.
Resident ResidentFrom(std::string_view status);

// Processor time of this process, all threads, in nanoseconds.
int64_t ProcessNanoseconds();
// Seconds of processor time since some start; only differences mean something.
struct CpuTime {
  double wall = 0;
  double own = 0;      // of this process, all threads
  double machine = 0;  // of everybody on all processors, time stolen by the hypervisor included
  int num_cpus = 1;
};
CpuTime ReadCpuTime();
// The share of the machine's processors that others used between two readings, 0 to 1. /proc/stat
// counts in hundredths of a second: over a short stretch this is coarse.
double OthersShare(const CpuTime& from, const CpuTime& to);
// Busy seconds and number of processors, from the text of /proc/stat.
CpuTime MachineTimeFrom(std::string_view stat, double ticks_per_second);

// Lets this process open as many files and sockets as it may at all, and says how many that are.
int64_t RaiseFileLimit();

// The processor's own name, or "unknown".
std::string ProcessorName();

}  // namespace hearth
