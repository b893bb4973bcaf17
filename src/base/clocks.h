// SPDX-License-Identifier: Apache-2.0
// What the machine's clocks say. The one on the wall is set by people and by the network: it is for
// showing dates. What is kept, ended or deleted goes by the other one, or by age_clock.h.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
namespace hearth {

struct ClockReading {
  int64_t wall_s = 0;  // since 1970; may jump, both ways
  int64_t boot_s = 0;  // since the machine was started, its sleep included; nobody can set it
  std::string boot;    // which start of the machine that was; empty: unknown
};

int64_t WallSeconds();
int64_t BootSeconds();
ClockReading ReadClocks();

// Where a test has clocks of its own.
using ClockFn = std::function<ClockReading()>;

}  // namespace hearth
