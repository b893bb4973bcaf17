// SPDX-License-Identifier: Apache-2.0
#include "kv/block_record.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace hearth {
namespace {

constexpr uint32_t kMagic = 0x31424b48;  // "HKB1": a change of the layout below changes it

struct Header {
  uint32_t magic = kMagic;
  int32_t group = 0;
  BlockKey key;
  uint64_t num_tokens = 0, num_bytes = 0;
  uint64_t sum = 0;  // of everything else
};
static_assert(sizeof(Header) == 48 && std::endian::native == std::endian::little);

// Four lanes of a multiplicative hash: against broken disks and lines, not against an enemy, who
// would have to know the secret in the keys first.
uint64_t SumOf(std::span<const std::byte> bytes) {
  constexpr uint64_t kFactor = 0x9fb21c651e98df25u;
  uint64_t lanes[4] = {1, 2, 3, 4};
  uint64_t words[4];
  size_t at = 0;
  for (; at + sizeof(words) <= bytes.size(); at += sizeof(words)) {
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (int i = 0; i < 4; ++i) lanes[i] = (std::rotl(lanes[i], 29) ^ words[i]) * kFactor;
  }
  uint64_t sum = bytes.size();
  for (; at < bytes.size(); ++at) {
    sum = (std::rotl(sum, 29) ^ static_cast<uint64_t>(bytes[at])) * kFactor;
  }
  for (const uint64_t lane : lanes) sum = (std::rotl(sum, 29) ^ lane ^ (lane >> 32)) * kFactor;
  return sum ^ (sum >> 32);
}

size_t PayloadAt(uint64_t num_tokens) { return sizeof(Header) + num_tokens * sizeof(Token); }

// The sum is taken with its own place empty.
uint64_t SumOfRecord(Header header, std::span<const std::byte> record) {
  header.sum = 0;
  const auto head = std::as_bytes(std::span(&header, 1));
  return SumOf(head) ^ std::rotl(SumOf(record.subspan(sizeof(Header))), 1);
}

bool ReadHeader(std::span<const std::byte> record, Header& header) {
  if (record.size() < sizeof(Header)) return false;
  std::memcpy(&header, record.data(), sizeof(header));
  return header.magic == kMagic && header.num_tokens <= record.size() &&
         header.num_bytes <= record.size() &&
         record.size() == PayloadAt(header.num_tokens) + header.num_bytes;
}

}  // namespace

std::vector<std::byte> MakeRecord(const TierKey& key, std::span<const Token> tokens,
                                  size_t num_bytes) {
  Header header;
  header.group = key.group;
  header.key = key.block;
  header.num_tokens = tokens.size();
  header.num_bytes = num_bytes;
  std::vector<std::byte> record(PayloadAt(tokens.size()) + num_bytes);
  std::memcpy(record.data(), &header, sizeof(header));
  std::memcpy(record.data() + sizeof(header), tokens.data(), tokens.size_bytes());
  return record;
}

std::span<std::byte> PayloadOf(std::vector<std::byte>& record, size_t num_bytes) {
  HEARTH_CHECK(record.size() >= sizeof(Header) + num_bytes);
  return std::span(record).last(num_bytes);
}

void FinishRecord(std::vector<std::byte>& record) {
  Header header;
  const bool is_whole = ReadHeader(record, header);
  HEARTH_CHECK(is_whole);
  header.sum = SumOfRecord(header, record);
  std::memcpy(record.data(), &header, sizeof(header));
}

bool IsIntact(std::span<const std::byte> record) {
  Header header;
  if (!ReadHeader(record, header)) return false;
  return header.sum == SumOfRecord(header, record);
}

bool IsRecordOf(std::span<const std::byte> record, const TierKey& key) {
  Header header;
  return ReadHeader(record, header) && header.key == key.block && header.group == key.group;
}

std::optional<std::span<const std::byte>> ReadRecord(std::span<const std::byte> record,
                                                     const TierKey& key,
                                                     std::span<const Token> tokens,
                                                     size_t num_bytes) {
  Header header;
  if (!ReadHeader(record, header) || header.num_bytes != num_bytes ||
      header.num_tokens != tokens.size()) {
    return std::nullopt;
  }
  const bool is_same =
      header.key == key.block && header.group == key.group &&
      std::memcmp(record.data() + sizeof(header), tokens.data(), tokens.size_bytes()) == 0;
  if (!is_same) return std::nullopt;
  return record.last(num_bytes);
}

}  // namespace hearth
