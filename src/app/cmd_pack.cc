// SPDX-License-Identifier: Apache-2.0
// hearth pack: a checkpoint arranged for this program once, so that starting it takes seconds.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/model_argument.h"
#include "app/open_backend.h"
#include "app/open_model.h"
#include "app/print.h"
#include "base/json.h"
#include "cpu/packed_model.h"
#include "platform/file.h"
#include "weights/packed_file.h"

namespace hearth {
namespace {

struct PackFlags {
  std::string in, out;
  BackendFlags hardware;
};

// What a directory holds beside its weights that a model cannot talk without, and how it is meant
// to be sampled.
Result<std::vector<NamedText>> TextsOf(const std::string& path, const WeightFile& file) {
  std::vector<NamedText> texts;
  if (file.config() == nullptr) return texts;
  texts.push_back({"config.json", WriteJson(*file.config())});
  const std::string directory = IsDirectory(path) ? path : path.substr(0, path.rfind('/') + 1);
  constexpr size_t kMaxBytes = size_t{64} << 20;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                           "generation_config.json"}) {
    const std::string from = directory.empty() ? name : directory + "/" + name;
    if (!FileExists(from)) continue;
    HEARTH_ASSIGN(std::string text, ReadTextFile(from, kMaxBytes));
    texts.push_back({name, std::move(text)});
  }
  return texts;
}

void ShowWriting(int64_t done, int64_t total) {
  if (isatty(STDERR_FILENO) == 0) return;
  PrintCodes(stderr, Printf("\rwriting %3d %%%s", static_cast<int>(100 * done / total),
                            done == total ? "\r\x1b[K" : ""));
}

Status Pack(PackFlags flags) {
  HEARTH_ASSIGN(flags.in, ModelPath(flags.in));
  HEARTH_ASSIGN(const Model model, OpenModel(flags.in));
  if (model.file->packed() != nullptr) {
    return Error(Code::kInvalid, "%s is already a packed file: use it as it is", flags.in.c_str());
  }
  if (IsDirectory(flags.out)) {
    return Error(Code::kInvalid, "%s is a directory: expected the name of a file to write",
                 flags.out.c_str());
  }
  HEARTH_ASSIGN(const std::vector<NamedText> texts, TextsOf(flags.in, *model.file));
  HEARTH_ASSIGN(const std::vector<PackedSource> sources, SourcesOf(*model.file, texts));
  HEARTH_ASSIGN(BackendOptions options, OptionsFrom(flags.hardware));
  options.max_step_tokens = options.max_rows = 0;
  HEARTH_ASSIGN(const BackendPlan plan, PlanBackend(model, options));
  HEARTH_TRY(CheckFits(plan, UsableMemoryBytes()).Within(flags.in));
  ThreadPool pool(options.num_threads);
  HEARTH_ASSIGN(const std::unique_ptr<PackedModel> packed,
                PackedModel::Make(model, pool, options.on_progress).Within(flags.in));
  const std::string spills = packed->WriteSpills();
  const PackedContent content{kPackedLayout, sources, packed->weights(), spills};
  HEARTH_TRY(WritePackedFile(flags.out, content, ShowWriting));
  PrintOut("{}: {:.2f} GiB of weights, packed from {}\n", flags.out,
           static_cast<double>(packed->weights().size()) / (1 << 30), flags.in);
  return Status();
}

}  // namespace

void AddPack(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PackFlags>();
  CLI::App* sub = app.add_subcommand(
      "pack", "Convert a model to the layout the CPU backend uses, so that it loads in seconds");
  sub->add_option("in", flags->in,
                  "GGUF file, directory with safetensors, or a name that `hearth list` shows")
      ->required();
  sub->add_option("out", flags->out, "Packed file to write")->required();
  AddThreads(*sub, flags->hardware);
  sub->footer(
      "Every command accepts the packed file as a model. Its output is bit for bit the same, and "
      "its hashes are\nchecked at every start. Packing needs as much memory and disk space as the "
      "weights; an existing output file\nis replaced atomically.");
  sub->callback([&chosen, flags] { chosen = [flags] { return Pack(*flags); }; });
}

}  // namespace hearth
