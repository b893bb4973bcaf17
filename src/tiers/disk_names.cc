// SPDX-License-Identifier: Apache-2.0
#include "tiers/disk_names.h"

namespace hearth {
namespace {

constexpr size_t kPlaceBytes = 8, kKeyBytes = 20, kTenantBytes = 4, kSizeBytes = 8;

void AppendBigEndian(std::string& out, uint64_t value, size_t num_bytes) {
  for (size_t i = num_bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
}
uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

std::string NameOfPlace(Place place) {
  std::string name;
  AppendBigEndian(name, place, kPlaceBytes);
  return name;
}
Place PlaceNamed(std::string_view name) { return name.size() == kPlaceBytes ? BigEndian(name) : 0; }

std::string NameOfKey(const TierKey& key) {
  std::string name;
  AppendBigEndian(name, key.block.hi, 8);
  AppendBigEndian(name, key.block.lo, 8);
  AppendBigEndian(name, static_cast<uint32_t>(key.group), 4);
  return name;
}
std::optional<TierKey> KeyNamed(std::string_view name) {
  if (name.size() != kKeyBytes) return std::nullopt;
  return TierKey{{BigEndian(name.substr(0, 8)), BigEndian(name.substr(8, 8))},
                 static_cast<int>(static_cast<uint32_t>(BigEndian(name.substr(16))))};
}

std::string ValueOf(const DiskEntry& entry) {
  std::string value = NameOfPlace(entry.place);
  AppendBigEndian(value, entry.tenant, kTenantBytes);
  AppendBigEndian(value, static_cast<uint64_t>(entry.bytes), kSizeBytes);
  return value;
}
DiskEntry EntryIn(std::string_view value) {
  DiskEntry entry;
  entry.place = PlaceNamed(value.substr(0, kPlaceBytes));
  if (value.size() != kPlaceBytes + kTenantBytes + kSizeBytes) return entry;
  entry.tenant = static_cast<uint32_t>(BigEndian(value.substr(kPlaceBytes, kTenantBytes)));
  // A size that no record has is damage, and counts as nothing.
  const uint64_t bytes = BigEndian(value.substr(kPlaceBytes + kTenantBytes));
  if (bytes < uint64_t{1} << 40) entry.bytes = static_cast<int64_t>(bytes);
  return entry;
}

}  // namespace hearth
