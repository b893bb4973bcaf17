// SPDX-License-Identifier: Apache-2.0
// Vocabulary files of byte-level models spell each byte as one printable character, and merges as
// two such spellings. Here they become bytes and token numbers.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/vocab.h"
namespace hearth {

// The bytes that a spelling such as "Ġthe" stands for; none when a character stands for no byte.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

using Spelling = std::string_view;
using SpelledMerge = std::pair<Spelling, Spelling>;

// Adds merges of normal tokens by their spellings. A merge of tokens that are not there, or into
// one that is not there, is refused.
Status ResolveMerges(std::span<const SpelledMerge> merges, Vocab& vocab);
// The same, then turns the normal tokens from spellings into bytes. A normal token whose spelling
// stands for no bytes can never come out of text: it becomes unused.
Status ResolveSpellings(std::span<const SpelledMerge> merges, Vocab& vocab);

}  // namespace hearth
