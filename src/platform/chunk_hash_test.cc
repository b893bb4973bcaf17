// SPDX-License-Identifier: Apache-2.0
#include "platform/chunk_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

namespace hearth {
namespace {

TEST(ChunkHash, PlainSumHasTheKnownValues) {
  // The check value of the CRC's catalogue, and RFC 3720's 32 bytes of zeros.
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(PlainCrc32c(std::as_bytes(std::span(kDigits.data(), kDigits.size()))), 0xe3069283u);
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(PlainCrc32c(zeros), 0x8a9136aau);
}

TEST(ChunkHash, IsFourPlainSumsOfQuarters) {
  std::mt19937 random(1);
  for (const size_t size : {0, 1, 7, 8, 31, 32, 33, 63, 64, 100, 1000, 4096, 65537}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const size_t quarter = size / 32 * 8;
    const std::span<const std::byte> all(bytes);
    const ChunkHash want = {
        PlainCrc32c(all.subspan(0, quarter)), PlainCrc32c(all.subspan(quarter, quarter)),
        PlainCrc32c(all.subspan(2 * quarter, quarter)), PlainCrc32c(all.subspan(3 * quarter))};
    EXPECT_EQ(HashOf(bytes), want) << size;
  }
}

TEST(ChunkHash, OfPiecesIsThatOfTheWhole) {
  std::mt19937 random(2);
  for (const size_t size : {0, 1, 31, 32, 33, 100, 4096, 65537}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    for (const size_t step : {size_t{1}, size_t{3}, size_t{8}, size_t{1000}, size + 1}) {
      ChunkHasher hasher(size);
      for (size_t at = 0; at < size; at += step) {
        hasher.Add(std::span(bytes).subspan(at, std::min(step, size - at)));
      }
      EXPECT_EQ(hasher.num_added(), size);
      EXPECT_EQ(hasher.Finish(), HashOf(bytes)) << size << " by " << step;
    }
  }
}

TEST(ChunkHash, SeesEveryBit) {
  std::vector<std::byte> bytes(200, std::byte{0x33});
  const ChunkHash before = HashOf(bytes);
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    EXPECT_NE(HashOf(bytes), before) << i;
    bytes[i / 8] ^= std::byte{1} << (i % 8);
  }
  EXPECT_EQ(HashOf(bytes), before);
  EXPECT_EQ(HexOf({0x1, 0xabcdef01, 0, 0xffffffff}), "00000001abcdef0100000000ffffffff");
}

}  // namespace
}  // namespace hearth
