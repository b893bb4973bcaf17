// SPDX-License-Identifier: Apache-2.0
#include "app/quality.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "app/lone_sequence.h"
#include "app/open_model.h"
#include "app/print.h"
#include "app/surprise.h"
#include "app/text_pieces.h"

namespace hearth {
namespace {

constexpr int kContext = 512;

using OnRow = std::function<void(size_t piece, size_t row, std::span<const float> logits)>;

// Predictions of every position of every piece, in order.
Status Predict(const Compared& what, const TextPieces& text, const OnRow& on_row) {
  HEARTH_ASSIGN(const Model model, OpenModelFor(what.path, "cpu"));
  HEARTH_ASSIGN(LoneSequence sequence, LoneSequence::Make(model, what.hardware, text.context));
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

Result<Quality> CompareQuality(const Compared& before, const Compared& after,
                               const std::string& text, int num_tokens) {
  HEARTH_ASSIGN(const TextPieces pieces, PiecesOf(before.path, text, num_tokens));
  std::vector<std::vector<float>> wanted;
  Surprises first, second;
  HEARTH_TRY(Predict(before, pieces, [&](size_t piece, size_t row, std::span<const float> logits) {
    wanted.emplace_back(logits.begin(), logits.end());
    first.Add(pieces.pieces[piece], row, logits);
  }));
  Quality quality;
  size_t next = 0;
  HEARTH_TRY(Predict(after, pieces, [&](size_t piece, size_t row, std::span<const float> logits) {
    const std::vector<float>& want = wanted[next++];
    quality.divergence.Add(std::vector<double>(want.begin(), want.end()), logits);
    second.Add(pieces.pieces[piece], row, logits);
  }));
  quality.perplexity_before = first.perplexity();
  quality.perplexity_after = second.perplexity();
  return quality;
}

void PrintQuality(const Quality& quality, const std::string& against) {
  PrintOut(
      "against {}, on {} tokens\nperplexity {:.4f} to {:.4f} ({:+.2f} %)\n"
      "top-1 agreement {:.2f} %\nmean KL {:.3e}\nmax KL {:.3e}\n",
      against, quality.divergence.rows(), quality.perplexity_before, quality.perplexity_after,
      100 * (quality.perplexity_after / quality.perplexity_before - 1),
      100 * quality.divergence.top1(), quality.divergence.mean_kl(), quality.divergence.max_kl());
}

}  // namespace hearth
