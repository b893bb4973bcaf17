// SPDX-License-Identifier: Apache-2.0
#include "doctor/memory_modules.h"

#include <algorithm>

#include "base/result.h"
#include "doctor/checks.h"

namespace hearth {
namespace {

constexpr unsigned kModule = 17, kEnd = 127;

// Little-endian, 0 beyond the structure: older firmware writes shorter ones.
unsigned At(std::string_view structure, size_t offset, size_t bytes) {
  if (structure.size() < offset + bytes) return 0;
  unsigned value = 0;
  for (size_t i = bytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(structure[offset + i]);
  }
  return value;
}

int64_t MebibytesOf(std::string_view structure) {
  const unsigned size = At(structure, 0x0c, 2);
  if (size == 0xffff) return 0;                                                 // not known
  if (size == 0x7fff) return At(structure, 0x1c, 4) & 0x7fffffff;               // in its own field
  if ((size & 0x8000) != 0) return static_cast<int64_t>(size & 0x7fff) / 1024;  // in KiB
  return size;
}

std::vector<MemoryModule> ReadModules(const SystemFiles& files) {
  return ParseModules(files.Bytes("/sys/firmware/dmi/tables/DMI"));
}

Finding Count(const SystemFiles& files) {
  const std::vector<MemoryModule> modules = ReadModules(files);
  if (modules.empty()) return Unknown("the firmware's table cannot be read (needs root)");
  if (modules.size() > 1) return Good(Printf("%zu memory modules", modules.size()));
  if (modules[0].configured_mts == 0) return Unknown("one module, without a speed: virtual memory");
  return Warning("one memory module",
                 "a second, equal module doubles the memory's speed, and with it tokens per "
                 "second");
}

Finding Speed(const SystemFiles& files) {
  const std::vector<MemoryModule> modules = ReadModules(files);
  for (const MemoryModule& module : modules) {
    if (module.rated_mts == 0 || module.configured_mts == 0) continue;
    if (module.configured_mts * 100 >= module.rated_mts * 95) continue;
    return Warning(Printf("memory runs at %d of %d MT/s", module.configured_mts, module.rated_mts),
                   "turn on the XMP or EXPO profile in the firmware's setup; tokens per second "
                   "grow with it");
  }
  if (ExpectedBytesPerSecond(modules) <= 0) return Unknown("the firmware names no speed");
  return Good(Printf("memory runs at its rated %d MT/s", modules[0].configured_mts));
}

Finding Alike(const SystemFiles& files) {
  const std::vector<MemoryModule> modules = ReadModules(files);
  if (modules.empty()) return Unknown("the firmware's table cannot be read (needs root)");
  const bool differs = std::any_of(modules.begin(), modules.end(), [&](const MemoryModule& each) {
    return each.mebibytes != modules[0].mebibytes || each.rated_mts != modules[0].rated_mts;
  });
  if (!differs) return Good("all modules are alike");
  return Note("the memory modules differ in size or speed",
              "the slowest sets the speed, and a part of the memory may run on one channel: equal "
              "modules are faster");
}

}  // namespace

std::vector<MemoryModule> ParseModules(std::string_view table) {
  std::vector<MemoryModule> modules;
  while (table.size() >= 4) {
    const unsigned type = At(table, 0, 1), length = At(table, 1, 1);
    if (length < 4 || length > table.size() || type == kEnd) break;
    const std::string_view structure = table.substr(0, length);
    if (type == kModule) {
      const MemoryModule module{MebibytesOf(structure), static_cast<int>(At(structure, 0x15, 2)),
                                static_cast<int>(At(structure, 0x20, 2))};
      if (module.mebibytes > 0) modules.push_back(module);
    }
    // Texts follow, each with a zero at its end, and one more zero behind the last.
    const size_t end = table.find(std::string_view("\0\0", 2), length);
    if (end == table.npos) break;
    table.remove_prefix(end + 2);
  }
  return modules;
}

double ExpectedBytesPerSecond(const std::vector<MemoryModule>& modules) {
  if (modules.empty()) return 0;
  int slowest = modules[0].configured_mts;
  for (const MemoryModule& each : modules) slowest = std::min(slowest, each.configured_mts);
  const auto channels = static_cast<double>(std::min<size_t>(modules.size(), 2));
  return channels * static_cast<double>(slowest) * 1e6 * 8;
}

void AddModuleChecks(const SystemFiles& files, std::vector<Check>& checks) {
  const auto add = [&](const char* name, Finding (*look)(const SystemFiles&)) {
    checks.push_back({name, [&files, look] { return look(files); }});
  };
  add("modules.count", Count);
  add("modules.speed", Speed);
  add("modules.alike", Alike);
}

}  // namespace hearth
