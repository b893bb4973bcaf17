// SPDX-License-Identifier: Apache-2.0
// Which of a product's kernels is used for how many rows: defaults, or what `hearth gpu tune`
// measured on this card. Results have the same bits with any of them.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "cuda/args.h"
#include "gpu/device.h"
#include "platform/user_folders.h"
namespace hearth::cuda {

inline constexpr size_t kNumKinds = static_cast<size_t>(WeightKind::kBf16) + 1;
const char* NameOf(WeightKind kind);
// Whether there is a kernel for many rows beside the one for few.
bool HasTwoKernels(WeightKind kind);

struct Tuning {
  Tuning() { few_up_to.fill(kTileTokens); }
  // By kind: so many rows are taken in tiles of eight, more in tiles of 32.
  std::array<int, kNumKinds> few_up_to;
  bool operator==(const Tuning&) const = default;
};

// What a measurement is good for: this card, this driver, these kernels.
std::string TuningKey(const DeviceFacts& facts, const std::string& driver,
                      std::span<const std::byte> image);
// Empty when no home is known.
std::string TuningPath(const Environment& environment);
// kNotFound when the file has no row of that key, or is not there.
Result<Tuning> ReadTuning(const std::string& path, const std::string& key);
// Rows of other keys stay.
Status WriteTuning(const std::string& path, const std::string& key, const Tuning& tuning);

}  // namespace hearth::cuda
