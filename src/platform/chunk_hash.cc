// SPDX-License-Identifier: Apache-2.0
#include "platform/chunk_hash.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
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

// `sum` before its last inversion, continued.
uint32_t PlainMore(uint32_t sum, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    sum = (sum >> 8) ^ kTable[(sum ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return sum;
}

[[gnu::target("sse4.2")]] uint32_t FastMore(uint32_t before, std::span<const std::byte> bytes) {
  uint64_t sum = before;
  while (bytes.size() >= kWord) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), kWord);
    sum = _mm_crc32_u64(sum, word);
    bytes = bytes.subspan(kWord);
  }
  for (const std::byte left : bytes) {
    sum = _mm_crc32_u8(static_cast<uint32_t>(sum), static_cast<uint8_t>(left));
  }
  return static_cast<uint32_t>(sum);
}

bool HasInstruction() {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction;
}

constexpr uint32_t kStart = 0xffffffffu;

}  // namespace

uint32_t PlainCrc32c(std::span<const std::byte> bytes) { return ~PlainMore(kStart, bytes); }

ChunkHash HashOf(std::span<const std::byte> bytes) {
  const size_t quarter = bytes.size() / kLanes / kWord * kWord;
  return HasInstruction() ? FastHash(bytes, quarter) : PlainHash(bytes, quarter);
}

ChunkHasher::ChunkHasher(uint64_t num_bytes)
    : num_bytes_(num_bytes), quarter_(num_bytes / kLanes / kWord * kWord) {
  sums_.fill(kStart);
}

void ChunkHasher::Add(std::span<const std::byte> bytes) {
  HEARTH_CHECK(bytes.size() <= num_bytes_ - num_added_);
  while (!bytes.empty()) {
    const uint64_t lane = quarter_ == 0 ? kLanes - 1 : std::min(num_added_ / quarter_, kLanes - 1);
    const uint64_t end = lane + 1 < kLanes ? (lane + 1) * quarter_ : num_bytes_;
    const std::span<const std::byte> piece =
        bytes.first(std::min<uint64_t>(bytes.size(), end - num_added_));
    sums_[lane] = HasInstruction() ? FastMore(sums_[lane], piece) : PlainMore(sums_[lane], piece);
    num_added_ += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

ChunkHash ChunkHasher::Finish() const {
  HEARTH_CHECK(num_added_ == num_bytes_);
  ChunkHash hash = sums_;
  for (uint32_t& sum : hash) sum = ~sum;
  return hash;
}

std::string HexOf(const ChunkHash& hash) {
  return Printf("%08x%08x%08x%08x", hash[0], hash[1], hash[2], hash[3]);
}

}  // namespace hearth
