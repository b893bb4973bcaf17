// SPDX-License-Identifier: Apache-2.0
// How often a randomised test repeats. The release build runs all rounds; under sanitizers, which
// make the scalar oracle thirty times slower, a share of the same sequence finds what they look
// for.
#pragma once
#include <cstdlib>
namespace hearth {

constexpr int Rounds(int all) {
#ifdef __SANITIZE_ADDRESS__
  return (all + 4) / 5;
#else
  return all;
#endif
}

// The longest tests play a third in CI, which sets HEARTH_QUICK; nightly plays all.
inline int QuickRounds(int all) {
  return std::getenv("HEARTH_QUICK") == nullptr ? all : (all + 2) / 3;
}

}  // namespace hearth
