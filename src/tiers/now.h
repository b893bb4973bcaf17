// SPDX-License-Identifier: Apache-2.0
// The time as tiers measure it: microseconds that never run backwards.
#pragma once
#include <chrono>
#include <cstdint>
namespace hearth {

inline int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace hearth
