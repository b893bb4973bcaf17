// SPDX-License-Identifier: Apache-2.0
// Doctor: what is computed or measured rather than read.
#include <algorithm>

#include "app/doctor_checks.h"
#include "cpu/kernel_choice.h"
#include "cpu/roofline.h"
#include "cpu/self_check.h"
#include "doctor/memory_modules.h"
#include "platform/isa.h"
#include "platform/topology.h"

namespace hearth {
namespace {

Finding Bits(Isa isa) {
  const std::string wrong = FirstDifference(KernelsOf(isa));
  if (wrong.empty()) return Good("computes the same bits as the scalar code");
  return Fault(wrong + " differs from the scalar code's",
               Printf("the processor or the hypervisor computes wrongly: run memtest86+ and look "
                      "for microcode updates; until then use --isa scalar instead of %s",
                      NameOf(isa)));
}

Finding Tiles(const SystemFiles& files) {
  const std::string flags = files.Line("/proc/cpuinfo", "flags");
  if (flags.find("amx_int8") == std::string::npos) return Good("this processor has no AMX");
  if (BestIsa() == Isa::kAmx) return Good("AMX may be used");
  return Warning("the processor has AMX, but the kernel or the container does not permit it",
                 "prompts are processed several times faster with it: allow arch_prctl in the "
                 "container's seccomp profile, and use Linux 5.16 or later");
}

Finding Bandwidth(const SystemFiles& files) {
  Result<Rooflines> rooflines = Rooflines::Make(ReadTopology().useful_threads());
  if (!rooflines.ok()) return Unknown("not measured: " + rooflines.status().message());
  double best = 0;
  for (int i = 0; i < 3; ++i) best = std::max(best, rooflines->StreamReadBytesPerSecond());
  const std::vector<MemoryModule> modules =
      ParseModules(files.Bytes("/sys/firmware/dmi/tables/DMI"));
  return JudgeBandwidth(best, ExpectedBytesPerSecond(modules));
}

}  // namespace

Finding JudgeBandwidth(double measured, double expected) {
  const std::string found = Printf("%.1f GB/s", measured / 1e9);
  if (expected <= 0) return Good(found);
  const std::string compared = found + Printf(" of %.1f or more", expected / 1e9);
  if (measured >= expected / 2) return Good(compared);
  return Warning(compared,
                 "tokens per second follow memory's speed: see the checks of the memory modules "
                 "above, and whether other programs or virtual machines use it");
}

void AddKernelBitChecks(const SystemFiles& files, std::vector<Check>& checks) {
  for (const Isa isa : SupportedIsas()) {
    if (isa == Isa::kScalar) continue;
    checks.push_back({Printf("kernels.%s", NameOf(isa)), [isa] { return Bits(isa); }});
  }
  checks.push_back({"kernels.amx-permission", [&files] { return Tiles(files); }});
}

void AddBandwidthCheck(const SystemFiles& files, std::vector<Check>& checks) {
  checks.push_back({"memory.bandwidth", [&files] { return Bandwidth(files); }});
}

}  // namespace hearth
