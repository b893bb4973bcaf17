// SPDX-License-Identifier: Apache-2.0
// How often a randomised test repeats. The release build runs all rounds; under sanitizers, which
// make the scalar oracle thirty times slower, a share of the same sequence finds what they look
// for.
#pragma once
namespace hearth {

constexpr int Rounds(int all) {
#ifdef __SANITIZE_ADDRESS__
  return (all + 4) / 5;
#else
  return all;
#endif
}

}  // namespace hearth
