// SPDX-License-Identifier: Apache-2.0
#include "app/served_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/model_facts.h"
#include "app/open_format.h"
#include "app/open_model.h"
#include "app/open_text.h"
#include "backend/gated_backend.h"
#include "backend/numerics.h"

namespace hearth {
namespace {

constexpr int64_t kLeastKvBytes = int64_t{256} << 20;

// The last goes away first.
class OpenedModel final : public LoadedModel {
 public:
  Engine& engine() override { return *engine_; }
  const ServedModel& model() const override { return served_; }

  ModelText text_;
  std::unique_ptr<ReplyMasks> masks_;
  ServedModel served_;
  std::unique_ptr<Engine> engine_;
};

// What is told of a model, and how it is asked for; not yet what it needs to talk.
Result<ServedModel> Describe(const ServedSpec& spec, const Model& model, const ModelText& text) {
  ServedModel out;
  out.name = spec.name;
  for (const std::string& name : spec.aliases) {
    if (name == "*") {
      out.takes_any_name = true;
    } else {
      out.aliases.push_back(name);
    }
  }
  out.fingerprint =
      fmt::format("hearth-{}-{}", HEARTH_VERSION, NumericsNameOf(spec.engine.hardware));
  out.date = spec.date;
  out.version = HEARTH_VERSION;
  out.facts = FactsOf(model, spec.path, *text.format, *text.tokenizer);
  out.sampling = text.sampling;
  HEARTH_ASSIGN(out.max_context, ContextOf(model.spec, spec.engine.max_context));
  return out;
}

// What is advertised must be had: no sequence is longer than the memory for K and V.
void HoldToMemory(const KvLayout& kv, ServedModel& served) {
  if (kv.full_tokens() == 0) return;
  served.max_context = static_cast<int>(std::min<int64_t>(served.max_context, kv.full_tokens()));
}

Result<std::unique_ptr<OpenedModel>> OpenParts(const ServedSpec& spec, const Model& model) {
  auto opened = std::make_unique<OpenedModel>();
  HEARTH_ASSIGN(opened->text_, OpenModelText(model, spec.path));
  const Tokenizer& tokenizer = *opened->text_.tokenizer;
  const ChatFormat& format = *opened->text_.format;
  HEARTH_ASSIGN(opened->masks_,
                ReplyMasks::Make(tokenizer, format.stop_tokens(), ReplyStyleOf(format, tokenizer)));
  HEARTH_ASSIGN(opened->served_, Describe(spec, model, opened->text_));
  opened->served_.tokenizer = &tokenizer;
  opened->served_.format = &format;
  opened->served_.masks = opened->masks_.get();
  return opened;
}

Result<EnginePlan> PlanShared(const ServedSpec& spec, const Model& model, int64_t budget) {
  EngineFlags flags = spec.engine;
  if (flags.kv_bytes == 0) {
    HEARTH_ASSIGN(BackendOptions options, OptionsFrom(flags.hardware));
    options.max_step_tokens = flags.max_step_tokens;
    SchedulerOptions widest;
    widest.max_sequences = flags.max_sequences;
    widest.max_step_tokens = flags.max_step_tokens;
    options.max_rows = WidestStepRows(widest);
    HEARTH_ASSIGN(const BackendPlan bare, PlanBackend(model, options));
    const int64_t left = budget - bare.total_bytes();
    flags.kv_bytes =
        std::max<int64_t>(1, std::min(std::max(kLeastKvBytes, bare.weight_bytes / 4), left / 2));
  }
  return PlanEngine(model, flags, static_cast<uint64_t>(budget));
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> OpenServed(const ServedSpec& spec) {
  HEARTH_ASSIGN(Model model, OpenModelFor(spec.path, "cpu", spec.engine.hardware));
  HEARTH_ASSIGN(std::unique_ptr<OpenedModel> opened, OpenParts(spec, model));
  EngineFlags flags = spec.engine;
  flags.cache.model_path = spec.path;
  flags.cache.weights = flags.hardware.weights;
  HEARTH_ASSIGN(opened->engine_, OpenEngine(model, flags));
  opened->served_.content = ContentOf(flags.cache, model);
  const auto snapshot = opened->engine_->snapshot();
  if (!snapshot->kv.empty() && snapshot->kv[0].window == 0) {
    const int tokens = snapshot->kv[0].counts.total * snapshot->block_tokens;
    opened->served_.max_context = std::min(opened->served_.max_context, tokens);
  }
  return std::unique_ptr<LoadedModel>(std::move(opened));
}

Result<MeasuredModel> MeasureServed(const ServedSpec& spec, int64_t budget) {
  HEARTH_ASSIGN(Model model, OpenModelFor(spec.path, "cpu"));
  HEARTH_ASSIGN(const ModelText text, OpenModelText(model, spec.path));
  MeasuredModel measured;
  HEARTH_ASSIGN(measured.known, Describe(spec, model, text));
  HEARTH_ASSIGN(const EnginePlan plan, PlanShared(spec, model, budget));
  measured.bytes = plan.backend.total_bytes();
  HoldToMemory(plan.backend.kv, measured.known);
  return measured;
}

Result<std::unique_ptr<LoadedModel>> OpenServedWithin(const ServedSpec& spec, int64_t budget,
                                                      int64_t bytes, StepGate& gate,
                                                      uint64_t first_id) {
  HEARTH_ASSIGN(Model model, OpenModelFor(spec.path, "cpu"));
  HEARTH_ASSIGN(EnginePlan plan, PlanShared(spec, model, budget));
  if (plan.backend.total_bytes() > bytes) {
    return Error(Code::kExhausted, "%s has changed, and needs more memory now; try again",
                 spec.path.c_str());
  }
  HEARTH_ASSIGN(std::unique_ptr<OpenedModel> opened, OpenParts(spec, model));
  HoldToMemory(plan.backend.kv, opened->served_);
  CacheFlags cache = spec.engine.cache;
  cache.model_path = spec.path;
  OpenedTier disk = OpenTier(cache, model, plan.backend.kv);
  opened->served_.content = ContentOf(cache, model);
  if (disk.tier != nullptr) plan.engine.kv.key_seed = disk.key_seed;
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenBackend(model, plan.backend));
  plan.engine.admission.first_id = first_id;
  WatchOptions watch;
  watch.stall_us = static_cast<int64_t>(spec.engine.stall_s * 1e6);
  opened->engine_ = std::make_unique<Engine>(BehindGate(std::move(backend), gate), plan.engine,
                                             watch, std::move(disk.tier));
  return std::unique_ptr<LoadedModel>(std::move(opened));
}

}  // namespace hearth
