// SPDX-License-Identifier: Apache-2.0
// What a tier keeps: the bytes of a block with everything needed to distrust them.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/tier.h"
namespace hearth {

// A record with room for `num_bytes` of block, which are written next and summed up after that.
std::vector<std::byte> MakeRecord(const TierKey& key, std::span<const Token> tokens,
                                  size_t num_bytes);
std::span<std::byte> PayloadOf(std::vector<std::byte>& record, size_t num_bytes);
// Sums everything up; without it the record is not intact.
void FinishRecord(std::vector<std::byte>& record);

// Whether the record is as it was finished. Reads all of it: costs what copying does.
bool IsIntact(std::span<const std::byte> record);
// Whether it says that it is this block's. Reads the head alone: a first look, before IsIntact.
bool IsRecordOf(std::span<const std::byte> record, const TierKey& key);
// The block's bytes, if the intact record is of just this content; none otherwise. Keys are hashes
// that strangers have a part in: the tokens are compared as well.
std::optional<std::span<const std::byte>> ReadRecord(std::span<const std::byte> record,
                                                     const TierKey& key,
                                                     std::span<const Token> tokens,
                                                     size_t num_bytes);

}  // namespace hearth
