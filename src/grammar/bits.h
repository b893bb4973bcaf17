// SPDX-License-Identifier: Apache-2.0
// Single tokens in the bits of a mask.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
namespace hearth {

inline void Allow(std::span<uint32_t> bits, Token token) {
  bits[static_cast<size_t>(token) / 32] |= uint32_t{1} << (token % 32);
}
inline void Forbid(std::span<uint32_t> bits, Token token) {
  bits[static_cast<size_t>(token) / 32] &= ~(uint32_t{1} << (token % 32));
}

}  // namespace hearth
