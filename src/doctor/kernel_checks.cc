// SPDX-License-Identifier: Apache-2.0
// The kernel's version and settings, and the limits of this process.
#include <algorithm>

#include "base/result.h"
#include "doctor/checks.h"

namespace hearth {
namespace {

// 5.16.2 as 516; 0 when the text is no version.
int64_t VersionOf(std::string_view text) {
  const size_t point = text.find('.');
  if (point == text.npos) return 0;
  return LeadingNumber(text).value_or(0) * 100 + LeadingNumber(text.substr(point + 1)).value_or(0);
}

Finding Version(const SystemFiles& files) {
  const std::string text = files.Text("/proc/sys/kernel/osrelease");
  const int64_t version = VersionOf(text);
  if (version == 0) return Unknown("the kernel's version is not known");
  const std::string flags = files.Line("/proc/cpuinfo", "flags");
  if (version < 516 && flags.find("amx_int8") != std::string::npos) {
    return Warning("Linux " + text + " cannot use this processor's AMX",
                   "prompts are processed several times faster with Linux 5.16 or later");
  }
  if (version < 513) {
    return Note("Linux " + text + " has no Landlock",
                "`hearth serve` cannot confine its access to files; Linux 5.13 or later can");
  }
  return Good("Linux " + text);
}

Finding Landlock(const SystemFiles& files) {
  const std::string list = files.Text("/sys/kernel/security/lsm");
  if (list.empty()) return Unknown("the list of security modules cannot be read");
  if (list.find("landlock") != std::string::npos) return Good("Landlock is available");
  return Note("Landlock is not enabled",
              "`hearth serve` cannot confine its access to files; add landlock to the kernel's "
              "lsm= parameter");
}

Finding ClockSource(const SystemFiles& files) {
  const std::string source =
      files.Text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (source.empty()) return Unknown("the kernel names no clock");
  if (source != "hpet" && source != "acpi_pm" && source != "jiffies") return Good(source);
  return Warning("the kernel's clock is " + source + ", which is slow to read",
                 "boot with tsc=reliable if the processor's own counter is sound; a firmware "
                 "update often mends it");
}

// The soft limit behind a name in /proc/self/limits; absent when there is none.
std::optional<int64_t> SoftLimit(const SystemFiles& files, std::string_view name) {
  return files.Field("/proc/self/limits", name);
}

Finding OpenFiles(const SystemFiles& files) {
  const std::optional<int64_t> limit = SoftLimit(files, "Max open files");
  if (!limit) return Good("no limit on open files");
  const std::string found = Printf("%lld files and connections", static_cast<long long>(*limit));
  if (*limit >= 1024) return Good(found);
  return Warning(found,
                 "`hearth serve` holds fewer connections: run `ulimit -n 65536` or set "
                 "LimitNOFILE= in the unit");
}

Finding AddressSpace(const SystemFiles& files) {
  const std::optional<int64_t> limit = SoftLimit(files, "Max address space");
  if (!limit) return Good("no limit on the address space");
  return Warning(Printf("at most %.1f GiB of address space (ulimit -v)",
                        static_cast<double>(*limit) / (1 << 30)),
                 "a model may fail to load although memory is free: run `ulimit -v unlimited`, and "
                 "limit memory by a cgroup instead");
}

Finding FileSize(const SystemFiles& files) {
  const std::optional<int64_t> limit = SoftLimit(files, "Max file size");
  if (!limit) return Good("no limit on the size of files");
  return Fault(Printf("files may have at most %.1f GiB (ulimit -f)",
                      static_cast<double>(*limit) / (1 << 30)),
               "downloads of larger models fail: run `ulimit -f unlimited`");
}

Finding Processes(const SystemFiles& files) {
  const std::optional<int64_t> limit = SoftLimit(files, "Max processes");
  if (!limit) return Good("no limit on threads");
  const std::string found = Printf("%lld threads per user", static_cast<long long>(*limit));
  if (*limit >= 256) return Good(found);
  return Warning(found, "Hearth may fail to start its threads: run `ulimit -u 4096`");
}

Finding Backlog(const SystemFiles& files) {
  const auto most = files.Number("/proc/sys/net/core/somaxconn");
  if (!most) return Unknown("net.core.somaxconn cannot be read");
  const std::string found =
      Printf("%lld connections may wait to be accepted", static_cast<long long>(*most));
  if (*most >= 1024) return Good(found);
  return Note(found,
              "many clients at once may be refused: run sudo sysctl "
              "net.core.somaxconn=4096");
}

Finding Tracing(const SystemFiles& files) {
  const auto scope = files.Number("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope || *scope > 0) return Good("other programs of a user cannot read Hearth's memory");
  return Note("programs of the same user can read each other's memory",
              "prompts in memory are open to them (`hearth serve` protects itself, `hearth run` "
              "does not): run sudo sysctl kernel.yama.ptrace_scope=1");
}

}  // namespace

void AddKernelChecks(const SystemFiles& files, std::vector<Check>& checks) {
  const auto add = [&](const char* name, Finding (*look)(const SystemFiles&)) {
    checks.push_back({name, [&files, look] { return look(files); }});
  };
  add("kernel.version", Version);
  add("kernel.landlock", Landlock);
  add("kernel.clock", ClockSource);
  add("kernel.backlog", Backlog);
  add("kernel.tracing", Tracing);
  add("limits.open-files", OpenFiles);
  add("limits.address-space", AddressSpace);
  add("limits.file-size", FileSize);
  add("limits.threads", Processes);
}

}  // namespace hearth
