// SPDX-License-Identifier: Apache-2.0
#include "mock_machines.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "ptx_run.h"

namespace hearth::cuda {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;

bool IsKnown(const void* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  return magic == kFatbinMagic ||
         std::strncmp(static_cast<const char*>(image), kSourceImage, sizeof kSourceImage - 1) == 0;
}

}  // namespace

std::unique_ptr<Machine> MachineOf(const void* image) {
  if (!IsKnown(image)) return nullptr;
  const char* path = std::getenv("HEARTH_MOCK_PTX");
  if (path == nullptr) return SourceEmulator(Schedule::kForward);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) Refuse("mock driver", std::string("HEARTH_MOCK_PTX: nothing in ") + path);
  return std::make_unique<PtxMachine>(path, text);
}

}  // namespace hearth::cuda
