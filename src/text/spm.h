// SPDX-License-Identifier: Apache-2.0
// Tokenizers over characters, in the manner of SentencePiece: the best-scored neighbours join, and
// a character without a token becomes its bytes.
#pragma once
#include <memory>

#include "text/tokenizer.h"
#include "text/vocab.h"
namespace hearth {

// `vocab` is of kind kSentencePiece and has passed the checks of MakeTokenizer. Its normal tokens
// are spelled with U+2581 for a space; all 256 bytes must have a token <0xNN>.
Result<std::unique_ptr<Tokenizer>> MakeSpmTokenizer(Vocab vocab);

}  // namespace hearth
