// SPDX-License-Identifier: Apache-2.0
// A text as the stretches of tokens that evaluation feeds a model.
#pragma once
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/model.h"
namespace hearth {

struct TextPieces {
  size_t text_bytes = 0;
  int context = 0;                         // tokens of a piece at most
  std::vector<std::vector<Token>> pieces;  // each begins as the model's texts do
};
// Reads `text_path` and cuts it into pieces of at most `context` tokens (and of the model's own
// context) that do not overlap, with the tokenizer of `model_path`. `most_tokens` > 0 cuts the text
// off there.
Result<TextPieces> ReadTextPieces(const Model& model, const std::string& model_path,
                                  const std::string& text_path, int context, int most_tokens = 0);

}  // namespace hearth
