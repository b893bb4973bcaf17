// SPDX-License-Identifier: Apache-2.0
// What the cache on disk calls its records, and what it notes of each: bytes in RocksDB's tables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kv/tier.h"
namespace hearth {

// Where a record would be in an endless file. From 1 on; 0: nowhere.
using Place = uint64_t;

struct DiskEntry {
  Place place = 0;
  uint32_t tenant = 0;
  uint8_t num_spared = 0;  // in memory alone
  int64_t bytes = 0;
};

struct TierKeyHash {
  size_t operator()(const TierKey& key) const {  // keys are hashes already
    return key.block.lo ^ (static_cast<uint64_t>(key.group) << 56);
  }
};

// Names in the order of what they name.
std::string NameOfPlace(Place place);
Place PlaceNamed(std::string_view name);
std::string NameOfKey(const TierKey& key);
std::optional<TierKey> KeyNamed(std::string_view name);

// An entry as the table of keys has it. Of one that an earlier version wrote the place is all that
// is known: it counts against nobody.
std::string ValueOf(const DiskEntry& entry);
DiskEntry EntryIn(std::string_view value);

}  // namespace hearth
