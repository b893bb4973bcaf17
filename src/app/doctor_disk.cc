// SPDX-License-Identifier: Apache-2.0
// Doctor: how fast the disk with the models reads, past the kernel's cache.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "app/doctor_checks.h"
#include "platform/file.h"
#include "store/inventory.h"

namespace hearth {
namespace {

// Enough for a disk to reach its rate; a slow one is stopped after a second.
constexpr int64_t kMostBytes = int64_t{256} << 20, kLeastBytes = int64_t{4} << 20;
constexpr size_t kPiece = size_t{4} << 20, kAlignment = 4096;

// The largest model that is one file.
std::string FileToRead(const Environment& environment) {
  Result<StorePlaces> places = FindPlaces(environment);
  if (!places.ok()) return "";
  std::string path;
  uint64_t largest = 0;
  for (const StoredModel& model : TakeInventory(*places).models) {
    if (!model.is_complete || model.bytes <= largest || !FileExists(model.path)) continue;
    largest = model.bytes;
    path = model.path;
  }
  return path;
}

Finding Rate(const Environment& environment) {
  const std::string path = FileToRead(environment);
  if (path.empty()) return Unknown("not measured: no model is stored in one file");
  Result<double> rate = DiskReadRate(path);
  if (!rate.ok()) return Unknown("not measured: " + rate.status().message());
  return JudgeDiskRate(*rate);
}

}  // namespace

Result<double> DiskReadRate(const std::string& path) {
  using Steady = std::chrono::steady_clock;
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (file < 0) return Error(Code::kIo, "%s cannot be read past the cache", Quoted(path).c_str());
  const std::unique_ptr<void, decltype(&std::free)> piece(std::aligned_alloc(kAlignment, kPiece),
                                                          std::free);
  int64_t bytes = 0;
  const Steady::time_point began = Steady::now();
  std::chrono::duration<double> passed{0};
  while (piece != nullptr && bytes < kMostBytes && passed.count() < 1) {
    const ssize_t got = ::read(file, piece.get(), kPiece);
    if (got <= 0) break;
    bytes += got;
    passed = Steady::now() - began;
  }
  ::close(file);
  if (bytes < kLeastBytes || passed.count() <= 0) {
    return Error(Code::kIo, "%s is too short or cannot be read past the cache",
                 Quoted(path).c_str());
  }
  return static_cast<double>(bytes) / passed.count();
}

Finding JudgeDiskRate(double bytes_per_second) {
  constexpr double kLarge = 12e9;  // gpt-oss-20b
  constexpr double kSlow = 300e6;  // between disks that turn and those that do not
  const std::string found = Printf("%.2f GB/s: a model of 12 GB is read in %.0f s",
                                   bytes_per_second / 1e9, kLarge / bytes_per_second);
  if (bytes_per_second >= kSlow) return Good(found);
  return Warning(found,
                 "keep models on an SSD of this machine: set XDG_DATA_HOME to a folder there");
}

void AddDiskCheck(const Environment& environment, std::vector<Check>& checks) {
  checks.push_back({"store.rate", [environment] { return Rate(environment); }});
}

}  // namespace hearth
