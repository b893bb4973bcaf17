// SPDX-License-Identifier: Apache-2.0
// Which definition of the arithmetic this program computes.
#pragma once
#include <cstdint>
#include <string>

#include "kv/layout.h"
namespace hearth {

// Equal numbers, equal bits on every backend (docs/numerics.md lists the versions).
inline constexpr int kNumericsVersion = 2;
// The same for what `--kv-type int8` changes.
inline constexpr int kInt8KvVersion = 2;
// The same for products with activations of 8 bits; everything else is as in the versions above, so
// a change of those changes this number, too.
inline constexpr int kFastVersion = 1;

// Two definitions side by side: activations of products in 16 bits, or in 8.
enum class Numerics : uint8_t { kExact, kFast };

// For people and for comparing: equal names, equal bits.
inline std::string NumericsName(Numerics numerics, KvCode code) {
  const std::string name = numerics == Numerics::kFast
                               ? "fast-" + std::to_string(kFastVersion)
                               : "exact-" + std::to_string(kNumericsVersion);
  return code == KvCode::kInt8 ? name + "-kv8v" + std::to_string(kInt8KvVersion) : name;
}
// For keys of cached blocks: equal numbers, equal bits.
inline constexpr int BlockNumerics(Numerics numerics, KvCode code) {
  return (numerics == Numerics::kFast ? 1'000'000 * kFastVersion : 0) +
         (code == KvCode::kInt8 ? 1000 * kInt8KvVersion : 0) + kNumericsVersion;
}

}  // namespace hearth
