// SPDX-License-Identifier: Apache-2.0
// hearth eval compare: what the CPU backend's arithmetic costs in quality, against the reference in
// double precision, on a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <thread>

#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/divergence.h"
#include "app/flag_checks.h"
#include "app/kv_flag.h"
#include "app/lone_sequence.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/open_model.h"
#include "app/print.h"
#include "app/text_pieces.h"
#include "model/reference.h"

namespace hearth {
namespace {

struct Flags {
  std::string model, text;
  int context = 256, most_tokens = 0;
  double least_top1 = 0, most_kl = INFINITY;
  BackendFlags hardware;
};

// One piece of text, its logits on the CPU backend, and how far they lie from the reference's.
struct Comparison {
  std::span<const Token> piece;
  std::vector<float> logits;
  Divergence divergence;
  Status status;
};

void CompareWithReference(const Model& model, Comparison& comparison) {
  const auto vocab = static_cast<size_t>(model.spec.vocab_size);
  Reference reference(model);
  comparison.status = reference.Append(
      comparison.piece, Reference::Wanted::kEveryRow, [&](int row, std::span<const double> want) {
        comparison.divergence.Add(
            want, std::span(comparison.logits).subspan(static_cast<size_t>(row) * vocab, vocab));
      });
}

// The reference takes one thread per piece; it is what takes the time.
Result<Divergence> CompareAll(const Model& model, const TextPieces& text, const Flags& flags) {
  HEARTH_ASSIGN(LoneSequence sequence, LoneSequence::Make(model, flags.hardware, text.context));
  const size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  Divergence sum;
  for (size_t first = 0; first < text.pieces.size(); first += at_once) {
    std::vector<Comparison> comparisons(std::min(at_once, text.pieces.size() - first));
    for (size_t i = 0; i < comparisons.size(); ++i) {
      comparisons[i].piece = text.pieces[first + i];
      sequence.Rewind(0);
      HEARTH_TRY(sequence.Append(comparisons[i].piece, 64, true, [&](std::span<const float> row) {
        comparisons[i].logits.insert(comparisons[i].logits.end(), row.begin(), row.end());
      }));
    }
    {
      std::vector<std::jthread> threads;
      for (Comparison& comparison : comparisons) {
        threads.emplace_back([&] { CompareWithReference(model, comparison); });
      }
    }
    for (Comparison& comparison : comparisons) {
      HEARTH_TRY(comparison.status);
      sum.Add(comparison.divergence);
    }
  }
  return sum;
}

Status Compare(const Flags& flags) {
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  HEARTH_ASSIGN(const Model model, OpenCheckedModel(path));
  HEARTH_ASSIGN(const TextPieces text,
                ReadTextPieces(model, path, flags.text, flags.context, flags.most_tokens));
  if (text.pieces.empty())
    return Error(Code::kInvalid, "%s: the text has no tokens", flags.text.c_str());
  HEARTH_ASSIGN(const Divergence found, CompareAll(model, text, flags));
  PrintOut("tokens {}\ntop-1 agreement {:.4f} %\nmean KL {:.3e}\nmax KL {:.3e}\nNMSE {:.3e}\n",
           found.rows(), 100 * found.top1(), found.mean_kl(), found.max_kl(), found.nmse());
  if (!(found.top1() >= flags.least_top1)) {
    return Error(Code::kExhausted, "top-1 agreement is %.4f, below --min-top1 %.4f", found.top1(),
                 flags.least_top1);
  }
  if (!(found.mean_kl() <= flags.most_kl)) {
    return Error(Code::kExhausted, "mean KL divergence is %.3e, above --max-kl %.3e",
                 found.mean_kl(), flags.most_kl);
  }
  return Status();
}

}  // namespace

void AddCompare(CLI::App& eval, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* sub = eval.add_subcommand(
      "compare", "Compare the CPU backend's predictions with the reference's on a text");
  sub->add_option("--model", flags->model,
                  "Model file or directory, or a name that `hearth list` shows")
      ->required();
  sub->add_option("--text", flags->text, "Text file")->required();
  sub->add_option("--tokens", flags->most_tokens,
                  "Number of tokens to compare; default: the whole text")
      ->check(Between(1, 1 << 30));
  sub->add_option("--context", flags->context,
                  "Length of the pieces the text is cut into, in tokens")
      ->check(Between(2, 1 << 20))
      ->capture_default_str();
  sub->add_option("--min-top1", flags->least_top1, "Fail if top-1 agreement is below this share")
      ->check(Between(0.0, 1.0));
  sub->add_option("--max-kl", flags->most_kl,
                  "Fail if the mean KL divergence is above this, in nats")
      ->check(CLI::NonNegativeNumber);
  AddIsa(*sub, flags->hardware);
  AddThreads(*sub, flags->hardware);
  AddKvType(*sub, flags->hardware.kv_code);
  AddNumerics(*sub, flags->hardware.numerics);
  sub->callback([&chosen, flags] { chosen = [flags] { return Compare(*flags); }; });
}

}  // namespace hearth
