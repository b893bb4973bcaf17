// SPDX-License-Identifier: Apache-2.0
// hearth inspect: what a model file is, without reading its weights.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/model_argument.h"
#include "app/open_backend.h"
#include "app/open_engine.h"
#include "app/open_model.h"
#include "app/open_sampling.h"
#include "app/print.h"
#include "base/json.h"
#include "model/costs.h"

namespace hearth {
namespace {

struct Options {
  std::string model;
  bool json = false;
};

struct FormatShare {
  int tensors = 0;
  int64_t bytes = 0;
};

std::map<std::string, FormatShare> QuantMix(const WeightFile& file) {
  std::map<std::string, FormatShare> mix;
  for (const NamedTensor& named : file.tensors()) {
    FormatShare& share = mix[NameOf(named.tensor.dtype)];
    share.tensors += 1;
    share.bytes += static_cast<int64_t>(named.tensor.bytes.size());
  }
  return mix;
}

int NumWindowLayers(const ModelSpec& spec) {
  return static_cast<int>(std::count_if(spec.layers.begin(), spec.layers.end(),
                                        [](const LayerSpec& layer) { return layer.window > 0; }));
}

int WindowOf(const ModelSpec& spec) {
  for (const LayerSpec& layer : spec.layers) {
    if (layer.window > 0) return layer.window;
  }
  return 0;
}

const char* NameOf(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "none";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kYarn:
      return "yarn";
    case RopeScaling::kLlama3:
      return "llama3";
    case RopeScaling::kDivisors:
      return "divisors";
  }
  return "?";
}

Json ShapeJson(const ModelSpec& spec) {
  return JsonObject{{"layers", static_cast<int64_t>(spec.layers.size())},
                    {"d_model", spec.d_model},
                    {"n_heads", spec.n_heads},
                    {"n_kv_heads", spec.n_kv_heads},
                    {"d_head", spec.d_head},
                    {"d_ff", spec.n_experts > 0 ? spec.d_ff_expert : spec.d_ff},
                    {"n_experts", spec.n_experts},
                    {"n_active_experts", spec.n_active_experts},
                    {"vocab_size", spec.vocab_size},
                    {"max_context", spec.max_context},
                    {"window_layers", NumWindowLayers(spec)},
                    {"window", WindowOf(spec)},
                    {"rope_theta", spec.rope.theta},
                    {"rope_scaling", NameOf(spec.rope.scaling)},
                    {"tied_head", spec.tied_head}};
}

Json SamplingJson(const SamplingDefaults& sampling) {
  JsonObject out;
  for (const auto& [name, value] : NamedSettings(sampling)) out.push_back({name, value});
  if (!sampling.source.empty()) out.push_back({"source", sampling.source});
  return out;
}

// What the activations and logits of a server's largest step take on this machine.
int64_t StepBytesOf(const Model& model) {
  const EngineFlags flags;
  SchedulerOptions scheduler;
  scheduler.max_sequences = flags.max_sequences;
  BackendOptions options;
  options.max_step_tokens = flags.max_step_tokens;
  options.max_rows = WidestStepRows(scheduler);
  Result<BackendPlan> plan = PlanBackend(model, options);
  return plan.ok() ? plan->step_bytes + plan->result_bytes : 0;
}

Json Report(const Model& model, const std::string& path, const SamplingDefaults& sampling) {
  const ModelCosts costs = CostsOf(model);
  JsonArray mix;
  for (const auto& [name, share] : QuantMix(*model.file)) {
    mix.push_back(JsonObject{{"format", name}, {"tensors", share.tensors}, {"bytes", share.bytes}});
  }
  const int64_t kv = KvBytes(costs, model.spec.max_context), step = StepBytesOf(model);
  return JsonObject{
      {"model", path},
      {"format", NameOf(model.file->format())},
      {"family", model.spec.family},
      {"name", model.spec.name},
      {"shards", model.file->num_shards()},
      {"file_bytes", model.file->file_bytes()},
      {"tensors", static_cast<int64_t>(model.file->tensors().size())},
      {"parameters", costs.parameters},
      {"active_parameters", costs.active_parameters},
      {"shape", ShapeJson(model.spec)},
      {"quantisation", std::move(mix)},
      {"sampling", SamplingJson(sampling)},
      {"weight_bytes", costs.weight_bytes},
      {"bytes_per_decoded_token", costs.decode_bytes},
      {"kv_bytes_per_token", costs.kv_bytes_per_token},
      {"kv_window_bytes", costs.kv_window_bytes},
      {"memory_bytes", JsonObject{{"weights", costs.weight_bytes},
                                  {"kv_at_max_context", kv},
                                  {"largest_step", step},
                                  {"total_at_max_context", costs.weight_bytes + kv + step}}}};
}

void PrintSampling(const SamplingDefaults& sampling) {
  if (!sampling.source.empty()) PrintOut("sampling    {}\n", DescribeSampling(sampling));
}

std::string Gib(int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
  if (bytes >= int64_t{1} << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return fmt::format("{:.1f} KiB", value / 1024);
}

std::string Count(int64_t n) {
  const double value = static_cast<double>(n);
  if (n >= 1000000000) return fmt::format("{:.2f} B", value / 1e9);
  if (n >= 1000000) return fmt::format("{:.1f} M", value / 1e6);
  return fmt::format("{}", n);
}

void PrintShape(const ModelSpec& spec) {
  PrintOut("layers      {}", spec.layers.size());
  if (const int window = WindowOf(spec); window > 0) {
    PrintOut(", {} of them with a window of {}", NumWindowLayers(spec), window);
  }
  PrintOut("\nwidth       {}, heads {} x {}, KV heads {}\n", spec.d_model, spec.n_heads,
           spec.d_head, spec.n_kv_heads);
  if (spec.n_experts > 0) {
    PrintOut("experts     {} of {} active, each {} wide\n", spec.n_active_experts, spec.n_experts,
             spec.d_ff_expert);
  } else {
    PrintOut("ffn         {} wide\n", spec.d_ff);
  }
  PrintOut("vocabulary  {}{}\n", spec.vocab_size, spec.tied_head ? ", head tied" : "");
  PrintOut("context     {} tokens, rope theta {:g}, scaling {}\n", spec.max_context,
           spec.rope.theta, NameOf(spec.rope.scaling));
}

void Print(const Model& model, const std::string& path) {
  const ModelCosts costs = CostsOf(model);
  const ModelSpec& spec = model.spec;
  PrintOut("{}\n", path);
  PrintOut("format      {}, {} shard{}, {} tensors, {}\n", NameOf(model.file->format()),
           model.file->num_shards(), model.file->num_shards() == 1 ? "" : "s",
           model.file->tensors().size(), Gib(static_cast<int64_t>(model.file->file_bytes())));
  PrintOut("family      {}{}\n", spec.family,
           spec.name.empty() ? "" : fmt::format(" ({})", spec.name));
  PrintOut("parameters  {}, {} active per token\n", Count(costs.parameters),
           Count(costs.active_parameters));
  PrintShape(spec);
  PrintOut("weights    ");
  for (const auto& [name, share] : QuantMix(*model.file)) {
    PrintOut(" {} x {} ({})", share.tensors, name, Gib(share.bytes));
  }
  PrintOut("\nper token   {} of weights read, {} of KV written (f16)\n", Gib(costs.decode_bytes),
           Gib(costs.kv_bytes_per_token + costs.kv_window_bytes / std::max(1, WindowOf(spec))));
  const int some = std::min(8192, spec.max_context);
  const int64_t step = StepBytesOf(model);
  for (const int context : {some, spec.max_context}) {
    const int64_t kv = KvBytes(costs, context);
    PrintOut("memory      {} = {} weights + {} steps + {} KV at {} tokens\n",
             Gib(costs.weight_bytes + step + kv), Gib(costs.weight_bytes), Gib(step), Gib(kv),
             context);
    if (some == spec.max_context) break;
  }
}

Status Inspect(const Options& options) {
  HEARTH_ASSIGN(const std::string path, ModelPath(options.model));
  HEARTH_ASSIGN(const Model model, OpenModel(path));
  HEARTH_ASSIGN(const SamplingDefaults sampling,
                OpenSamplingDefaults(TextSource::Of(*model.file, path)));
  if (options.json) {
    PrintJson(Report(model, path, sampling));
  } else {
    Print(model, path);
    PrintSampling(sampling);
  }
  return Status();
}

}  // namespace

void AddInspect(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "inspect",
      "Show a model's family, shapes, weight formats and memory use, without reading its weights");
  sub->add_option("model", options->model,
                  "GGUF file, Hugging Face directory, directory in OpenAI's original layout, or a "
                  "name that `hearth list` shows")
      ->required();
  sub->add_flag("--json", options->json, "Print JSON");
  sub->callback([&chosen, options] { chosen = [options] { return Inspect(*options); }; });
}

}  // namespace hearth
