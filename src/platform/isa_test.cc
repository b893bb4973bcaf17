// SPDX-License-Identifier: Apache-2.0
#include "platform/isa.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Isa, NamesRoundTrip) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    EXPECT_EQ(IsaNamed(NameOf(isa)), isa);
  }
  EXPECT_EQ(IsaNamed("neon"), std::nullopt);
  EXPECT_EQ(IsaNamed(""), std::nullopt);
}

TEST(Isa, SupportedLevelsEndWithTheBest) {
  const std::vector<Isa> isas = SupportedIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  EXPECT_EQ(isas.back(), BestIsa());
}

// The compiler's own detection is an independent witness for what it knows.
TEST(Isa, AgreesWithTheCompilersDetection) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  EXPECT_EQ(BestIsa() >= Isa::kAvx2, avx2);
  const bool avx512 = __builtin_cpu_supports("avx512vnni") != 0 &&
                      __builtin_cpu_supports("avx512vbmi") != 0 &&
                      __builtin_cpu_supports("avx512bw") != 0;
  EXPECT_EQ(BestIsa() >= Isa::kAvx512, avx512);
}

}  // namespace
}  // namespace hearth
