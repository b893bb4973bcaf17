// SPDX-License-Identifier: Apache-2.0
#include "platform/chunk_hash.h"

#include <immintrin.h>

#include <cstring>

#include "base/result.h"

namespace hearth {
namespace {

constexpr size_t kLanes = 4, kWord = 8;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = sum;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

ChunkHash PlainHash(std::span<const std::byte> bytes, size_t quarter) {
  ChunkHash hash;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t begin = lane * quarter;
    const size_t size = lane + 1 < kLanes ? quarter : bytes.size() - begin;
    hash[lane] = PlainCrc32c(bytes.subspan(begin, size));
  }
  return hash;
}

[[gnu::target("sse4.2")]] ChunkHash FastHash(std::span<const std::byte> bytes, size_t quarter) {
  const std::byte* at[kLanes];
  uint64_t sum[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    at[lane] = bytes.data() + lane * quarter;
    sum[lane] = 0xffffffffu;
  }
  for (size_t i = 0; i < quarter; i += kWord) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      uint64_t word;
      std::memcpy(&word, at[lane] + i, kWord);
      sum[lane] = _mm_crc32_u64(sum[lane], word);
    }
  }
  for (const std::byte left : bytes.subspan(kLanes * quarter)) {
    sum[3] = _mm_crc32_u8(static_cast<uint32_t>(sum[3]), static_cast<uint8_t>(left));
  }
  ChunkHash hash;
  for (size_t lane = 0; lane < kLanes; ++lane) hash[lane] = ~static_cast<uint32_t>(sum[lane]);
  return hash;
}

}  // namespace

uint32_t PlainCrc32c(std::span<const std::byte> bytes) {
  uint32_t sum = 0xffffffffu;
  for (const std::byte byte : bytes) {
    sum = (sum >> 8) ^ kTable[(sum ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return ~sum;
}

ChunkHash HashOf(std::span<const std::byte> bytes) {
  const size_t quarter = bytes.size() / kLanes / kWord * kWord;
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? FastHash(bytes, quarter) : PlainHash(bytes, quarter);
}

std::string HexOf(const ChunkHash& hash) {
  return Printf("%08x%08x%08x%08x", hash[0], hash[1], hash[2], hash[3]);
}

}  // namespace hearth
