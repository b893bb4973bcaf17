// SPDX-License-Identifier: Apache-2.0
#include "app/quality.h"

#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "app/lone_sequence.h"
#include "app/open_model.h"
#include "app/surprise.h"
#include "app/text_pieces.h"

namespace hearth {
namespace {

constexpr int kContext = 512;

using OnRow = std::function<void(size_t piece, size_t row, std::span<const float> logits)>;

// Predictions of every position of every piece, in order.
Status Predict(const std::string& path, const TextPieces& text, const BackendFlags& hardware,
               const OnRow& on_row) {
  HEARTH_ASSIGN(const Model model, OpenModelFor(path, "cpu"));
  HEARTH_ASSIGN(LoneSequence sequence, LoneSequence::Make(model, hardware, text.context));
  for (size_t piece = 0; piece < text.pieces.size(); ++piece) {
    sequence.Rewind(0);
    size_t row = 0;
    HEARTH_TRY(sequence.Append(text.pieces[piece], 64, true, [&](std::span<const float> logits) {
      on_row(piece, row++, logits);
    }));
  }
  return Status();
}

// Perplexity, token by token.
struct Surprises {
  double sum = 0;
  int64_t count = 0;
  void Add(std::span<const Token> piece, size_t row, std::span<const float> logits) {
    if (row + 1 >= piece.size()) return;
    sum += Surprise(logits, piece[row + 1]);
    ++count;
  }
  double perplexity() const { return std::exp(sum / static_cast<double>(count)); }
};

Result<TextPieces> PiecesOf(const std::string& path, const std::string& text, int num_tokens) {
  HEARTH_ASSIGN(const Model model, OpenModel(path));
  HEARTH_ASSIGN(TextPieces pieces, ReadTextPieces(model, path, text, kContext, num_tokens));
  size_t most = 0;
  for (const auto& piece : pieces.pieces) most = std::max(most, piece.size());
  if (most < 2) {
    return Error(Code::kInvalid, "%s: the text is too short: no token to predict", text.c_str());
  }
  return pieces;
}

}  // namespace

Result<Quality> CompareQuality(const std::string& before, const std::string& after,
                               const std::string& text, int num_tokens,
                               const BackendFlags& hardware) {
  HEARTH_ASSIGN(const TextPieces pieces, PiecesOf(before, text, num_tokens));
  std::vector<std::vector<float>> wanted;
  Surprises first, second;
  HEARTH_TRY(Predict(before, pieces, hardware,
                     [&](size_t piece, size_t row, std::span<const float> logits) {
                       wanted.emplace_back(logits.begin(), logits.end());
                       first.Add(pieces.pieces[piece], row, logits);
                     }));
  Quality quality;
  size_t next = 0;
  HEARTH_TRY(Predict(
      after, pieces, hardware, [&](size_t piece, size_t row, std::span<const float> logits) {
        const std::vector<float>& want = wanted[next++];
        quality.divergence.Add(std::vector<double>(want.begin(), want.end()), logits);
        second.Add(pieces.pieces[piece], row, logits);
      }));
  quality.perplexity_before = first.perplexity();
  quality.perplexity_after = second.perplexity();
  return quality;
}

}  // namespace hearth
