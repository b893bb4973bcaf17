// SPDX-License-Identifier: Apache-2.0
// hearth eval kv: what a KV cache of int8 costs in quality, against the usual one of int16.
#include <CLI/CLI.hpp>
#include <memory>

#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/flag_checks.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/quality.h"

namespace hearth {
namespace {

struct Flags {
  std::string model, text;
  int num_tokens = 2048;
  BackendFlags hardware;
};

Status EvalKv(const Flags& flags) {
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  Compared before{path, flags.hardware}, after{path, flags.hardware};
  after.hardware.kv_code = KvCode::kInt8;
  HEARTH_ASSIGN(const Quality quality, CompareQuality(before, after, flags.text, flags.num_tokens));
  PrintQuality(quality, "a KV cache of int16");
  return Status();
}

}  // namespace

void AddEvalKv(CLI::App& eval, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* sub =
      eval.add_subcommand("kv", "Measure what `--kv-type int8` costs in quality on a text");
  sub->add_option("--model", flags->model,
                  "Model file or directory, or a name that `hearth list` shows")
      ->required();
  sub->add_option("--text", flags->text, "Text file")->required();
  sub->add_option("--tokens", flags->num_tokens, "Number of tokens to compare")
      ->check(Between(2, 1 << 30))
      ->capture_default_str();
  AddIsa(*sub, flags->hardware);
  AddThreads(*sub, flags->hardware);
  AddNumerics(*sub, flags->hardware.numerics);
  sub->callback([&chosen, flags] { chosen = [flags] { return EvalKv(*flags); }; });
}

}  // namespace hearth
