// SPDX-License-Identifier: Apache-2.0
// Which definition of the arithmetic this program computes.
#pragma once
namespace hearth {

// Equal numbers, equal bits on every backend (docs/numerics.md lists the versions).
inline constexpr int kNumericsVersion = 2;

}  // namespace hearth
