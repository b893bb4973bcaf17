// SPDX-License-Identifier: Apache-2.0
// Tokenizers over bytes: split into pieces, look each piece up whole, merge what is left.
#pragma once
#include <memory>

#include "text/tokenizer.h"
#include "text/vocab.h"
namespace hearth {

// `vocab` is of kind kRankedBpe or kMergedBpe and has passed the checks of MakeTokenizer.
Result<std::unique_ptr<Tokenizer>> MakeBpeTokenizer(Vocab vocab);

}  // namespace hearth
