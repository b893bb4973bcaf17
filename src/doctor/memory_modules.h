// SPDX-License-Identifier: Apache-2.0
// The memory modules as the firmware describes them (SMBIOS, structure type 17).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>
namespace hearth {

struct MemoryModule {
  int64_t mebibytes = 0;
  int rated_mts = 0;       // what the module could do, in million transfers a second; 0: not said
  int configured_mts = 0;  // what it was set to; 0: not said
};

// The modules that are plugged in. Reads no further than `table` reaches, whatever it says.
std::vector<MemoryModule> ParseModules(std::string_view table);

// Bytes per second that the modules could deliver at least, taking two channels where there are
// two modules or more; 0 when the firmware names no speed.
double ExpectedBytesPerSecond(const std::vector<MemoryModule>& modules);

}  // namespace hearth
