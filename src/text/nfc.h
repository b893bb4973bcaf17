// SPDX-License-Identifier: Apache-2.0
// Unicode normalisation form C, which some vocabularies demand of text before anything else.
// As of Unicode 9.0, like the tokenizer that the models concerned were trained with.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

// The text in form C: `text` itself when it is already (found in one fast pass), else `storage`,
// which is overwritten. Bytes that are not UTF-8 stay as they are. O(n log n) at worst.
std::string_view NormalizeNfc(std::string_view text, std::string& storage);

}  // namespace hearth
