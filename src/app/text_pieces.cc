// SPDX-License-Identifier: Apache-2.0
#include "app/text_pieces.h"

#include <algorithm>

#include "app/open_tokenizer.h"
#include "app/text_source.h"
#include "platform/file.h"

namespace hearth {

Result<TextPieces> ReadTextPieces(const Model& model, const std::string& model_path,
                                  const std::string& text_path, int context, int most_tokens) {
  constexpr size_t kMaxText = size_t{64} << 20;
  HEARTH_ASSIGN(const std::string text, ReadTextFile(text_path, kMaxText));
  HEARTH_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer,
                OpenTokenizer(TextSource::Of(*model.file, model_path)));
  std::vector<Token> tokens;
  tokenizer->Encode(text, tokens);
  if (most_tokens > 0 && tokens.size() > static_cast<size_t>(most_tokens)) {
    tokens.resize(static_cast<size_t>(most_tokens));
  }
  for (const Token token : tokens) {
    if (token < model.spec.vocab_size) continue;
    return Error(Code::kCorrupt, "the tokenizer produced token %d, but the model has %d tokens",
                 token, model.spec.vocab_size);
  }
  const TokenizerTraits& traits = tokenizer->traits();
  TextPieces found;
  found.text_bytes = text.size();
  found.context = std::min(context, model.spec.max_context);
  const bool begins = traits.add_bos && traits.bos.has_value();
  const auto room = static_cast<size_t>(found.context - (begins ? 1 : 0));
  for (size_t first = 0; first < tokens.size(); first += room) {
    std::vector<Token> piece;
    if (begins) piece.push_back(*traits.bos);
    const size_t size = std::min(room, tokens.size() - first);
    piece.insert(piece.end(), tokens.begin() + static_cast<std::ptrdiff_t>(first),
                 tokens.begin() + static_cast<std::ptrdiff_t>(first + size));
    found.pieces.push_back(std::move(piece));
  }
  return found;
}

}  // namespace hearth
