// SPDX-License-Identifier: Apache-2.0
// A TokenMask for replies that are a grammar's text from the first token to the last.
#pragma once
#include <memory>
#include <vector>

#include "engine/token_mask.h"
#include "grammar/grammar.h"
namespace hearth {

// `stop_tokens` may be written where the grammar may end, and finish the sequence.
std::unique_ptr<TokenMask> MakeGrammarMask(std::shared_ptr<const Grammar> grammar,
                                           std::vector<Token> stop_tokens);

}  // namespace hearth
