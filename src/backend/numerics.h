// SPDX-License-Identifier: Apache-2.0
// Which definition of the arithmetic this program computes.
#pragma once
#include <string>

#include "kv/layout.h"
namespace hearth {

// Equal numbers, equal bits on every backend (docs/numerics.md lists the versions).
inline constexpr int kNumericsVersion = 2;

// For people and for comparing: equal names, equal bits.
inline std::string NumericsName(KvCode code) {
  return "exact-" + std::to_string(kNumericsVersion) + (code == KvCode::kInt8 ? "-kv8" : "");
}

}  // namespace hearth
