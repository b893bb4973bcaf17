// SPDX-License-Identifier: Apache-2.0
#include "base/clocks.h"

#include <ctime>
#include <fstream>

namespace hearth {
namespace {

std::string ReadBoot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  // It goes into records that are split at spaces.
  return boot.size() <= 64 ? boot : "";
}

}  // namespace

int64_t WallSeconds() { return static_cast<int64_t>(std::time(nullptr)); }

int64_t BootSeconds() {
  timespec now{};
  // A kernel without it has no sleep that anybody could count.
  if (::clock_gettime(CLOCK_BOOTTIME, &now) != 0) ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec);
}

ClockReading ReadClocks() {
  static const std::string boot = ReadBoot();
  return {WallSeconds(), BootSeconds(), boot};
}

}  // namespace hearth
