// SPDX-License-Identifier: Apache-2.0
// Names for the small integers that must never be mixed up.
#pragma once
#include <cstdint>
namespace hearth {
using Token = int32_t;                        // index into the vocabulary
enum class BlockId : int32_t { kNone = -1 };  // one physical KV block
enum class SeqId : uint64_t {};               // one running request
}  // namespace hearth
