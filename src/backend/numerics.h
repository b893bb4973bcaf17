// SPDX-License-Identifier: Apache-2.0
// Which definition of the arithmetic this program computes.
#pragma once
#include <string>

#include "kv/layout.h"
namespace hearth {

// Equal numbers, equal bits on every backend (docs/numerics.md lists the versions).
inline constexpr int kNumericsVersion = 2;
// The same for what `--kv-type int8` changes.
inline constexpr int kInt8KvVersion = 2;

// For people and for comparing: equal names, equal bits.
inline std::string NumericsName(KvCode code) {
  const std::string name = "exact-" + std::to_string(kNumericsVersion);
  return code == KvCode::kInt8 ? name + "-kv8v" + std::to_string(kInt8KvVersion) : name;
}
// For keys of cached blocks: equal numbers, equal bits.
inline constexpr int BlockNumerics(KvCode code) {
  return code == KvCode::kInt8 ? 1000 * kInt8KvVersion + kNumericsVersion : kNumericsVersion;
}

}  // namespace hearth
