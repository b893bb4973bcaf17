// SPDX-License-Identifier: Apache-2.0
#include "platform/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace hearth {
namespace {

TEST(Isa, NamesRoundTrip) {
  for (int i = 0; i < kNumIsas; ++i) {
    const auto isa = static_cast<Isa>(i);
    EXPECT_EQ(IsaNamed(NameOf(isa)), isa);
  }
  EXPECT_EQ(IsaNames(), "scalar, avx2, avxvnni, avx512vnni, avx512 or amx");
  EXPECT_EQ(IsaNamed("neon"), std::nullopt);
  EXPECT_EQ(IsaNamed(""), std::nullopt);
}

TEST(Isa, SupportedLevelsEndWithTheBest) {
  const std::vector<Isa> isas = SupportedIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  EXPECT_EQ(isas.back(), BestIsa());
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
  for (int i = 0; i < kNumIsas; ++i) {
    const auto isa = static_cast<Isa>(i);
    EXPECT_EQ(HasIsa(isa), std::count(isas.begin(), isas.end(), isa) == 1) << NameOf(isa);
  }
}

// The compiler's own detection is an independent witness for what it knows.
TEST(Isa, AgreesWithTheCompilersDetection) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  EXPECT_EQ(BestIsa() >= Isa::kAvx2, avx2);
  const bool vnni =
      __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  EXPECT_EQ(HasIsa(Isa::kAvx512Vnni), vnni);
  EXPECT_EQ(HasIsa(Isa::kAvx512), vnni && __builtin_cpu_supports("avx512vbmi") != 0);
}

// The kernel is another, where this compiler does not know the name.
TEST(Isa, AgreesWithTheKernelAboutAvxVnni) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line) && !line.starts_with("flags")) {
  }
  if (line.empty()) GTEST_SKIP() << "SKIPPED LOUDLY: /proc/cpuinfo names no flags";
  EXPECT_EQ(HasIsa(Isa::kAvxVnni), (line + " ").find(" avx_vnni ") != std::string::npos);
}

}  // namespace
}  // namespace hearth
