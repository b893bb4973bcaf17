// SPDX-License-Identifier: Apache-2.0
// hearth quantize: a model with smaller weights, and what that costs.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/flag_checks.h"
#include "app/model_argument.h"
#include "app/open_backend.h"
#include "app/print.h"
#include "app/quality.h"
#include "quantize/quantize.h"

namespace hearth {
namespace {

struct Flags {
  std::string in, out, to, profile = "all", text;
  int num_tokens = 2048;
  bool lists_tensors = false;
  BackendFlags hardware;
};

void ShowProgress(uint64_t done, uint64_t total) {
  if (isatty(STDERR_FILENO) == 0) return;
  PrintCodes(stderr, Printf("\rquantizing %3d %%%s", static_cast<int>(100 * done / total),
                            done >= total ? "\r\x1b[K" : ""));
}

Result<Target> TargetOf(const Flags& flags) {
  const bool is_small = flags.profile == "small";
  if (flags.to.empty() && !is_small) {
    return Error(Code::kInvalid, "--to is missing: for example --to int8 or --to int4");
  }
  HEARTH_ASSIGN(Target target, ParseTarget(flags.to.empty() ? "int4" : flags.to));
  if (is_small) target.profile = Profile::kSmall;
  return target;
}

// By what they were and what they are, the largest first.
void PrintSummary(const std::vector<TensorOutcome>& outcomes) {
  struct Sum {
    int count = 0;
    uint64_t before = 0, after = 0;
    double worst = 0;
  };
  std::map<std::string, Sum> by_kind;
  bool is_second = false;
  for (const TensorOutcome& each : outcomes) {
    const std::string kind = each.from == each.to
                                 ? fmt::format("{} kept", NameOf(each.to))
                                 : fmt::format("{} to {}", NameOf(each.from), NameOf(each.to));
    Sum& sum = by_kind[kind];
    ++sum.count;
    sum.before += each.bytes_before;
    sum.after += each.bytes_after;
    sum.worst = std::max(sum.worst, each.error);
    is_second |= each.from != each.to && BitsPerValue(each.from) < 16;
  }
  PrintOut("{:<22} {:>8} {:>12} {:>12}  {}\n", "tensors", "count", "MiB before", "MiB after",
           "largest error");
  const auto in_mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  for (const auto& [kind, sum] : by_kind) {
    PrintOut("{:<22} {:>8} {:>12.1f} {:>12.1f}  {:.4f}\n", kind, sum.count, in_mib(sum.before),
             in_mib(sum.after), sum.worst);
  }
  if (is_second) {
    PrintOut("note: some tensors had been quantized before; a model in F16 or BF16 loses less\n");
  }
}

void PrintTensors(const std::vector<TensorOutcome>& outcomes) {
  for (const TensorOutcome& each : outcomes) {
    PrintOut("{:<40} {:>6} to {:<6} error {:.4f}{}{}\n", each.name, NameOf(each.from),
             NameOf(each.to), each.error, each.why.empty() ? "" : "  ", each.why);
  }
}

Status ReportQuality(const Flags& flags) {
  HEARTH_ASSIGN(const Quality quality,
                CompareQuality({flags.in, flags.hardware}, {flags.out, flags.hardware}, flags.text,
                               flags.num_tokens));
  PrintOut("\n");
  PrintQuality(quality, "the source");
  return Status();
}

Status Quantize(Flags flags) {
  HEARTH_ASSIGN(const Target target, TargetOf(flags));
  HEARTH_ASSIGN(flags.in, ModelPath(flags.in));
  std::error_code ignored;
  if (std::filesystem::equivalent(flags.in, flags.out, ignored)) {
    return Error(Code::kInvalid, "%s is the model itself: give the result another name",
                 flags.out.c_str());
  }
  if (std::filesystem::is_directory(flags.out, ignored)) {
    return Error(Code::kInvalid, "%s is a directory: expected the name of a file to write",
                 flags.out.c_str());
  }
  HEARTH_ASSIGN(const std::unique_ptr<WeightFile> file, WeightFile::Open(flags.in));
  HEARTH_ASSIGN(const BackendOptions options, OptionsFrom(flags.hardware));
  std::vector<TensorOutcome> outcomes;
  {
    ThreadPool pool(options.num_threads);
    HEARTH_ASSIGN(outcomes,
                  QuantizeFile(*file, target, flags.out, pool, ShowProgress).Within(flags.in));
  }
  if (flags.lists_tensors) PrintTensors(outcomes);
  PrintSummary(outcomes);
  uint64_t before = 0, after = 0;
  for (const TensorOutcome& each : outcomes) {
    before += each.bytes_before;
    after += each.bytes_after;
  }
  PrintOut("{}: {:.2f} GiB of weights, {:.2f} before\n", flags.out,
           static_cast<double>(after) / (1 << 30), static_cast<double>(before) / (1 << 30));
  if (!flags.text.empty()) return ReportQuality(flags);
  PrintOut("To see what it costs in quality, add --text FILE with a text like those it is for.\n");
  return Status();
}

}  // namespace

void AddQuantize(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* sub =
      app.add_subcommand("quantize", "Write a model with smaller weights, and show what it loses");
  sub->add_option("in", flags->in, "GGUF file, or a name that `hearth list` shows")->required();
  sub->add_option("out", flags->out, "GGUF file to write")->required();
  sub->add_option("--to", flags->to,
                  "int8 (Q8_0), int4 (Q4_K), mxfp4, f16, bf16, f32, q4_0, q4_1, q4_k, q5_0, q5_1, "
                  "q5_k, q6_k, q8_0, or keep");
  sub->add_option("--profile", flags->profile,
                  "all: every matrix; small: attention and head alone, to 4 bits unless --to says "
                  "otherwise (for gpt-oss, whose experts are small already)")
      ->check(CLI::IsMember({"all", "small"}))
      ->capture_default_str();
  sub->add_option("--text", flags->text,
                  "Text file; the result's predictions on it are compared with the source's");
  sub->add_option("--tokens", flags->num_tokens, "Number of tokens of the text to compare")
      ->check(Between(2, 1 << 20))
      ->capture_default_str();
  sub->add_flag("--tensors", flags->lists_tensors, "List every tensor with its error");
  AddThreads(*sub, flags->hardware);
  sub->footer(
      "Norms, biases and the router stay as they are, the vocabulary keeps at least 6 bits, and "
      "no tensor gets\nlarger. Tensors that lose much more than the others get a format with one "
      "bit more. An existing output\nfile is replaced atomically.");
  sub->callback([&chosen, flags] { chosen = [flags] { return Quantize(*flags); }; });
}

}  // namespace hearth
