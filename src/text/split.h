// SPDX-License-Identifier: Apache-2.0
// Cuts text into the pieces that byte-pair merging never crosses. One forward scanner, written by
// hand, stands for the regular expressions the models were trained with; no regular expression is
// ever run. Linear time, no recursion, no allocation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
namespace hearth {

enum class SplitRule : uint8_t { kO200k, kLlama3, kQwen2, kGpt2, kSmollm };
const char* NameOf(SplitRule rule);

// Finds the end of the piece that begins at `begin`; `begin` < `end`. Pieces lie end to end and
// together are the text. A byte that is no part of valid UTF-8 counts as one character that is
// neither letter, number, nor space, so every input has pieces.
using PieceScanner = const char* (*)(const char* begin, const char* end);
PieceScanner ScannerFor(SplitRule rule);

// The rule whose regular expression is spelled exactly so, or none. Hugging Face files spell it
// out.
std::optional<SplitRule> RuleOfRegex(std::string_view regex);

}  // namespace hearth
