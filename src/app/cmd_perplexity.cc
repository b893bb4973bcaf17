// SPDX-License-Identifier: Apache-2.0
// hearth eval perplexity: how well a model predicts a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>

#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/flag_checks.h"
#include "app/kv_flag.h"
#include "app/lone_sequence.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/open_model.h"
#include "app/print.h"
#include "app/surprise.h"
#include "app/text_pieces.h"
#include "model/reference.h"

namespace hearth {
namespace {

struct Flags {
  std::string model, text, backend = "cpu";
  int context = 512;
  BackendFlags hardware;
};

struct Sum {
  double surprise = 0;
  int64_t tokens = 0;
};

// Every token of the piece but its first is predicted from those before it. `sequence` serves every
// piece: making one packs all weights.
Status Add(const Model& model, const Flags& flags, std::span<const Token> piece,
           std::optional<LoneSequence>& sequence, Sum& sum) {
  size_t next = 1;
  const auto count = [&](auto logits) {
    if (next < piece.size()) {
      sum.surprise += Surprise(logits, piece[next]);
      ++sum.tokens;
    }
    ++next;
  };
  if (flags.backend == "reference") {
    Reference reference(model);
    return reference.Append(piece, Reference::Wanted::kEveryRow,
                            [&](int, std::span<const double> logits) { count(logits); });
  }
  if (!sequence) {
    HEARTH_ASSIGN(LoneSequence made, LoneSequence::Make(model, flags.hardware, flags.context));
    sequence.emplace(std::move(made));
  }
  sequence->Rewind(0);
  return sequence->Append(piece, 64, true, [&](std::span<const float> logits) { count(logits); });
}

Status Perplexity(const Flags& flags) {
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  HEARTH_ASSIGN(const Model model, OpenModelFor(path, flags.backend));
  HEARTH_ASSIGN(const TextPieces text, ReadTextPieces(model, path, flags.text, flags.context));
  Flags adjusted = flags;
  adjusted.context = text.context;
  Sum sum;
  std::optional<LoneSequence> sequence;
  for (const std::vector<Token>& piece : text.pieces) {
    HEARTH_TRY(Add(model, adjusted, piece, sequence, sum));
  }
  if (sum.tokens == 0) {
    return Error(Code::kInvalid, "%s: the text is too short: no token to predict",
                 flags.text.c_str());
  }
  const double mean = sum.surprise / static_cast<double>(sum.tokens);
  PrintOut("perplexity {:.4f}\ntokens {}\nbits per byte {:.4f}\ncontext {}\n", std::exp(mean),
           sum.tokens, sum.surprise / std::log(2) / static_cast<double>(text.text_bytes),
           adjusted.context);
  return Status();
}

}  // namespace

void AddPerplexity(CLI::App& eval, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* sub =
      eval.add_subcommand("perplexity", "Perplexity of a model on a text; lower is better");
  sub->add_option("--model", flags->model,
                  "Model file or directory, or a name that `hearth list` shows")
      ->required();
  sub->add_option("--text", flags->text, "Text file")->required();
  sub->add_option("--context", flags->context,
                  "Length of the pieces the text is cut into, in tokens")
      ->check(Between(2, 1 << 20))
      ->capture_default_str();
  sub->add_option("--backend", flags->backend, "Compute backend")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
  AddIsa(*sub, flags->hardware);
  AddThreads(*sub, flags->hardware);
  AddKvType(*sub, flags->hardware.kv_code);
  AddNumerics(*sub, flags->hardware.numerics);
  sub->callback([&chosen, flags] { chosen = [flags] { return Perplexity(*flags); }; });
}

}  // namespace hearth
