// SPDX-License-Identifier: Apache-2.0
#include "cpu/roofline.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "platform/isa.h"

namespace hearth {
namespace {

// A loop the compiler skipped, or a share it missed, would be the fastest memory ever measured.
TEST(Roofline, ReadsEveryWord) {
  std::vector<uint64_t> words(3 * 4096 / 8 + 1024);
  std::iota(words.begin(), words.end(), uint64_t{1} << 40);
  const auto* at = reinterpret_cast<const std::byte*>(words.data());
  constexpr int64_t kBytes = 3 * 4096;
  const uint64_t want = std::accumulate(words.begin(), words.begin() + kBytes / 8, uint64_t{0});
  for (const int streams : {1, 8}) {
    if (BestIsa() >= Isa::kAvx2) {
      EXPECT_EQ(ReadMemoryAvx2(at, kBytes, streams), want) << streams;
    }
    if (BestIsa() >= Isa::kAvx512Vnni) {
      EXPECT_EQ(ReadMemoryAvx512(at, kBytes, streams), want) << streams;
    }
  }
}

TEST(Roofline, VnniAddsUpAllItsProducts) {
  if (BestIsa() < Isa::kAvx512Vnni) GTEST_SKIP() << "no AVX-512 VNNI here";
  const auto dot = [](uint32_t unsigned_bytes, uint32_t signed_bytes) {
    int32_t sum = 0;
    for (int i = 0; i < 32; i += 8) {
      sum += static_cast<int32_t>(unsigned_bytes >> i & 0xff) *
             static_cast<int8_t>(signed_bytes >> i & 0xff);
    }
    return sum;
  };
  const int32_t a_round = dot(0x7f3b1d05, 0x11f3e72b) + dot(0x11f3e72b, 0x7f3b1d05);
  // Twelve sums of sixteen lanes.
  for (const int rounds : {1, 2, 7}) {
    EXPECT_EQ(RepeatVnniAvx512(rounds), 12 * 16 * rounds * a_round) << rounds;
  }
}

TEST(Roofline, TilesAddUpAllTheirProducts) {
  if (BestIsa() < Isa::kAmx) GTEST_SKIP() << "no AMX here";
  std::vector<int8_t> values(16 * 64);
  for (int i = 0; i < 16 * 64; ++i) {
    values[static_cast<size_t>(i)] = static_cast<int8_t>(i * 37 % 251 - 125);
  }
  // Row m of the left tile with column n of the right one, whose rows hold four columns each.
  const auto element = [&](int m, int n) {
    int32_t sum = 0;
    for (int k = 0; k < 64; ++k) {
      sum += values[static_cast<size_t>(m * 64 + k)] *
             values[static_cast<size_t>(k / 4 * 64 + 4 * n + k % 4)];
    }
    return sum;
  };
  for (const int rounds : {1, 3}) {
    EXPECT_EQ(RepeatTilesAmx(rounds), 4 * rounds * (element(0, 0) + element(15, 15))) << rounds;
  }
}

TEST(Roofline, MeasuresWhatTheMachineHas) {
  auto rooflines = Rooflines::Make(1);
  ASSERT_TRUE(rooflines.ok()) << rooflines.status().message();
  EXPECT_GE(rooflines->buffer_bytes(), int64_t{1} << 30);
  EXPECT_GT(rooflines->PlainReadBytesPerSecond(), 1e8);
  EXPECT_GT(rooflines->StreamReadBytesPerSecond(), 1e8);
  EXPECT_EQ(rooflines->VnniOpsPerSecond().has_value(), BestIsa() >= Isa::kAvx512Vnni);
  EXPECT_EQ(rooflines->AmxOpsPerSecond().has_value(), BestIsa() >= Isa::kAmx);
}

// A line comes from another core in less than a microsecond, however far that is.
TEST(Roofline, LooksTakeTime) {
  auto one = Rooflines::Make(1);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->LookSeconds(), 0);
  auto two = Rooflines::Make(2);
  ASSERT_TRUE(two.ok());
  const double seconds = two->LookSeconds();
  EXPECT_GE(seconds, 0);
  EXPECT_LT(seconds, 1e-3);
}

}  // namespace
}  // namespace hearth
