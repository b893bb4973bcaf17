// SPDX-License-Identifier: Apache-2.0
// Processors: what they can do, and what keeps them from doing it.
#include <algorithm>

#include "base/result.h"
#include "doctor/checks.h"

namespace hearth {
namespace {

constexpr char kCpus[] = "/sys/devices/system/cpu";

bool HasFlag(const std::string& flags, const std::string& flag) {
  return (" " + flags + " ").find(" " + flag + " ") != std::string::npos;
}

Finding Instructions(const SystemFiles& files) {
  const std::string flags = files.Line("/proc/cpuinfo", "flags");
  if (flags.empty()) return Unknown("/proc/cpuinfo names no instruction sets");
  for (const char* needed : {"avx2", "fma", "f16c"}) {
    if (HasFlag(flags, needed)) continue;
    return Fault(Printf("the processor does not offer %s", needed),
                 "Hearth falls back to scalar code, 10 to 50 times slower. In a virtual machine, "
                 "pass the host's processor through (qemu: -cpu host); otherwise use a machine "
                 "from 2014 or later");
  }
  if (HasFlag(flags, "avx512_vnni") && HasFlag(flags, "amx_int8")) return Good("AVX-512 and AMX");
  // With AMX it depends on the file (docs/decisions/0162).
  const std::string faster = "; --numerics fast reads prompts faster here";
  if (!HasFlag(flags, "avx512_vnni")) {
    return Good((HasFlag(flags, "avx_vnni") ? "AVX2 and AVX-VNNI" : "AVX2") + faster);
  }
  return Good((HasFlag(flags, "avx512vbmi") ? "AVX-512" : "AVX-512 without VBMI") + faster);
}

// How many processors have `file` with a content that `is_bad`.
template <class IsBad>
std::pair<int, int> CountBad(const SystemFiles& files, const std::string& file, IsBad is_bad) {
  int bad = 0, all = 0;
  for (const std::string& cpu : files.Numbered(kCpus, "cpu")) {
    const std::string text = files.Text(std::string(kCpus) + "/" + cpu + "/" + file);
    if (text.empty()) continue;
    ++all;
    bad += is_bad(cpu, text) ? 1 : 0;
  }
  return {bad, all};
}

Finding Governor(const SystemFiles& files) {
  // Under intel_pstate and amd_pstate_epp, powersave means "the processor decides", which is fine.
  const std::string driver = files.Text(std::string(kCpus) + "/cpu0/cpufreq/scaling_driver");
  const bool decides_itself = driver == "intel_pstate" || driver.starts_with("amd-pstate-epp");
  const auto [bad, all] =
      CountBad(files, "cpufreq/scaling_governor", [&](const std::string&, const std::string& text) {
        return text == "powersave" && !decides_itself;
      });
  if (all == 0) return Unknown("the kernel does not control the clock here");
  if (bad == 0) return Good("no processor is held at its lowest clock");
  return Warning(Printf("%d of %d processors use the powersave governor", bad, all),
                 "run: cpupower frequency-set -g performance (or schedutil)");
}

Finding ClockCap(const SystemFiles& files) {
  int64_t allowed = 0, possible = 0;
  const auto [bad, all] = CountBad(
      files, "cpufreq/scaling_max_freq", [&](const std::string& cpu, const std::string& text) {
        const auto most =
            files.Number(std::string(kCpus) + "/" + cpu + "/cpufreq/cpuinfo_max_freq");
        const auto cap = LeadingNumber(text);
        if (!most || !cap || *cap * 100 >= *most * 95) return false;
        allowed = *cap;
        possible = *most;
        return true;
      });
  if (all == 0) return Unknown("the kernel does not control the clock here");
  if (bad == 0) return Good("no cap on the clock");
  return Warning(
      Printf("the clock of %d processors is capped at %.1f of %.1f GHz", bad,
             static_cast<double>(allowed) / 1e6, static_cast<double>(possible) / 1e6),
      "run: cpupower frequency-set -u " + Printf("%.1fGHz", static_cast<double>(possible) / 1e6));
}

Finding Turbo(const SystemFiles& files) {
  const auto no_turbo = files.Number(std::string(kCpus) + "/intel_pstate/no_turbo");
  const auto boost = files.Number(std::string(kCpus) + "/cpufreq/boost");
  if (!no_turbo && !boost) return Unknown("the kernel does not say whether turbo is on");
  if (no_turbo == 1) {
    return Warning("turbo is off",
                   "prompts are processed more slowly; run: echo 0 | sudo tee "
                   "/sys/devices/system/cpu/intel_pstate/no_turbo");
  }
  if (boost == 0) {
    return Warning("boost is off",
                   "prompts are processed more slowly; run: echo 1 | sudo tee "
                   "/sys/devices/system/cpu/cpufreq/boost");
  }
  return Good("turbo is on");
}

Finding Heat(const SystemFiles& files) {
  int64_t most = 0;
  bool is_known = false;
  for (const char* kind : {"core", "package"}) {
    CountBad(files, Printf("thermal_throttle/%s_throttle_count", kind),
             [&](const std::string&, const std::string& text) {
               is_known = true;
               most = std::max(most, LeadingNumber(text).value_or(0));
               return false;
             });
  }
  if (!is_known) return Unknown("the kernel does not count thermal throttling here");
  if (most == 0) return Good("never throttled by heat since the start");
  return Warning(
      Printf("throttled by heat %lld times since the start", static_cast<long long>(most)),
      "clean or improve the cooling; a laptop should stand free and be plugged in");
}

Finding Offline(const SystemFiles& files) {
  const int count = CountOfList(files.Text(std::string(kCpus) + "/offline"));
  if (count == 0) return Good("all processors are online");
  return Warning(Printf("%d processors are offline", count),
                 "run: echo 1 | sudo tee /sys/devices/system/cpu/cpuN/online, for each N in "
                 "/sys/devices/system/cpu/offline");
}

// Time that a hypervisor gave to other machines, since the start.
Finding Stolen(const SystemFiles& files) {
  const std::string line = files.Line("/proc/stat", "cpu");
  if (line.empty()) return Unknown("/proc/stat cannot be read");
  int64_t sum = 0, stolen = 0;
  size_t at = 0;
  for (int column = 0; column < 8 && at < line.size(); ++column) {
    const int64_t value = LeadingNumber(std::string_view(line).substr(at)).value_or(0);
    sum += value;
    if (column == 7) stolen = value;
    at = line.find(' ', at);
    if (at == std::string::npos) break;
    at = line.find_first_not_of(' ', at);
  }
  const double share = sum > 0 ? static_cast<double>(stolen) / static_cast<double>(sum) : 0.0;
  if (share <= 0.02) return Good(Printf("the hypervisor takes %.1f %% of the time", share * 100));
  return Warning(
      Printf("the hypervisor gave %.1f %% of the processors' time to others", share * 100),
      "speed will vary; ask for dedicated processors");
}

Finding Neighbours(const SystemFiles& files) {
  const std::string text = files.Text("/proc/loadavg");
  const int cpus = CountOfList(files.Text(std::string(kCpus) + "/online"));
  if (text.empty() || cpus == 0) return Unknown("the load of the machine is not known");
  // In hundredths: "3.25" is 325.
  const size_t point = text.find('.');
  if (point == std::string::npos) return Unknown("the load of the machine is not known");
  const int64_t load =
      LeadingNumber(text).value_or(0) * 100 + LeadingNumber(text.substr(point + 1, 2)).value_or(0);
  const std::string found =
      Printf("%.2f threads ran on average in the last minute, on %d processors",
             static_cast<double>(load) / 100, cpus);
  if (load * 2 < int64_t{cpus} * 100) return Good(found);
  return Note(found,
              "other programs compete for the processors: see them with `top`; a running "
              "`hearth serve` counts as well");
}

Finding Affinity(const SystemFiles& files) {
  const int allowed = CountOfList(files.Line("/proc/self/status", "Cpus_allowed_list"));
  const int online = CountOfList(files.Text(std::string(kCpus) + "/online"));
  if (allowed == 0 || online == 0) return Unknown("the allowed processors are not known");
  if (allowed >= online) return Good(Printf("all %d processors may be used", online));
  return Note(
      Printf("%d of %d processors may be used (taskset, cpuset or a container)", allowed, online),
      "give Hearth more processors there if it should be faster");
}

}  // namespace

void AddProcessorChecks(const SystemFiles& files, std::vector<Check>& checks) {
  const auto add = [&](const char* name, Finding (*look)(const SystemFiles&)) {
    checks.push_back({name, [&files, look] { return look(files); }});
  };
  add("processor.instructions", Instructions);
  add("processor.governor", Governor);
  add("processor.clock-cap", ClockCap);
  add("processor.turbo", Turbo);
  add("processor.heat", Heat);
  add("processor.offline", Offline);
  add("processor.stolen", Stolen);
  add("processor.load", Neighbours);
  add("processor.affinity", Affinity);
}

}  // namespace hearth
