// SPDX-License-Identifier: Apache-2.0
#include "platform/usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "platform/file.h"

namespace hearth {
namespace {

// /proc/stat grows with interrupts and processors.
constexpr size_t kMaxTextBytes = size_t{4} << 20;

// Takes the next word of digits off the text; 0 when there is none.
int64_t TakeNumber(std::string_view& text) {
  const size_t first = text.find_first_not_of(" \t");
  text.remove_prefix(std::min(first, text.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// What follows `name` at the start of a line.
std::string_view AfterName(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(name)) return line.substr(name.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace

Resident ResidentFrom(std::string_view status) {
  const auto kibibytes = [&](std::string_view name) {
    std::string_view value = AfterName(status, name);
    return TakeNumber(value) * 1024;
  };
  return {kibibytes("VmRSS:"), kibibytes("RssAnon:"), kibibytes("VmHWM:")};
}

Resident ReadResident() { return ResidentFrom(ReadKernelText("/proc/self/status", kMaxTextBytes)); }

CpuTime MachineTimeFrom(std::string_view stat, double ticks_per_second) {
  // user nice system idle iowait irq softirq steal (guest time is inside user).
  std::string_view all = AfterName(stat, "cpu ");
  int64_t ticks = 0;
  for (int field = 0; field < 8; ++field) {
    const int64_t value = TakeNumber(all);
    if (field != 3 && field != 4) ticks += value;
  }
  CpuTime time;
  time.machine = static_cast<double>(ticks) / ticks_per_second;
  int cpus = 0;
  for (size_t at = stat.find("\ncpu"); at != stat.npos; at = stat.find("\ncpu", at + 1)) ++cpus;
  time.num_cpus = std::max(1, cpus);
  return time;
}

int64_t ProcessNanoseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

CpuTime ReadCpuTime() {
  CpuTime time = MachineTimeFrom(ReadKernelText("/proc/stat", kMaxTextBytes),
                                 static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK))));
  time.own = 1e-9 * static_cast<double>(ProcessNanoseconds());
  time.wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return time;
}

double OthersShare(const CpuTime& from, const CpuTime& to) {
  const double room = (to.wall - from.wall) * to.num_cpus;
  if (room <= 0) return 0;
  return std::clamp((to.machine - from.machine - (to.own - from.own)) / room, 0.0, 1.0);
}

int64_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  const rlim_t now = setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
  return static_cast<int64_t>(std::min<rlim_t>(now, INT32_MAX));
}

std::string ProcessorName() {
  const std::string text = ReadKernelText("/proc/cpuinfo", kMaxTextBytes);
  std::string_view name = AfterName(text, "model name");
  name.remove_prefix(std::min(name.find_first_not_of("\t: "), name.size()));
  return name.empty() ? "unknown" : std::string(name);
}

}  // namespace hearth
