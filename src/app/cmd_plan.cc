// SPDX-License-Identifier: Apache-2.0
// hearth plan: will a model fit, how fast will it be, here or on another machine, and for how many.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "app/cmd_plan.h"
#include "app/compute_flags.h"
#include "app/flag_checks.h"
#include "app/kv_flag.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/open_engine.h"
#include "app/open_model.h"
#include "app/plan_sample.h"
#include "app/print.h"
#include "app/server_memory.h"
#include "app/today.h"
#include "base/terminal.h"
#include "plan/plan.h"
#include "platform/file.h"
#include "platform/isa.h"
#include "platform/topology.h"
#include "platform/usage.h"
#include "server/access/account.h"
#include "store/inventory.h"

namespace hearth {
namespace {

struct PlanFlags {
  std::string model, machine, html;
  bool json = false;
  UserLoad load{.users = 0};
  LoadTarget95 target;
  double itl_target_ms = 200;
  EngineFlags engine;
};

// Of the stream read, what decode of one user reaches: between 0.7 and 1.0 by format.
constexpr double kUsualShare = 0.85;

struct Where {
  std::optional<MachineText> other;  // absent: here
  BackendOptions options;            // of the sample, which runs here
  uint64_t usable_bytes = 0;
};

// The kernels of the described machine where this one has them.
Result<Where> FindWhere(const PlanFlags& flags, int64_t weight_bytes, PlanRecord& record) {
  Where where;
  BackendFlags hardware = flags.engine.hardware;
  where.usable_bytes = UsableMemoryBytes();
  record.machine = ProcessorName();
  if (!flags.machine.empty()) {
    HEARTH_ASSIGN(where.other, ParseMachine(flags.machine));
    record.machine = flags.machine;
    record.is_here = false;
    const std::optional<Isa> wanted = IsaNamed(where.other->isa);
    if (wanted && !HasIsa(*wanted)) {
      record.assumptions.push_back(
          Printf("this machine lacks %s, so its speed-up of prompts and batches is not counted",
                 NameOf(*wanted)));
    } else if (wanted) {
      hardware.isa = where.other->isa;
    }
    where.usable_bytes = where.other->memory_bytes;
    if (where.usable_bytes == 0) {
      where.usable_bytes = static_cast<uint64_t>(2 * weight_bytes) + (uint64_t{16} << 30);
      record.assumptions.push_back(
          "its memory was not given: enough for twice the weights and "
          "16 GiB (add \"256 GB\" to --machine)");
    }
  }
  HEARTH_ASSIGN(where.options, OptionsFrom(hardware));
  record.isa = where.options.isa;
  return where;
}

void Assume(const Where& where, const PlanSample& sample, PlanRecord& record) {
  std::vector<std::string>& out = record.assumptions;
  out.push_back(
      Printf("speeds come from running %d of %d layers here for %.0f s with random "
             "tokens; layers of one kind take equally long",
             sample.layers, record.layers, sample.seconds));
  if (sample.others > 0.05) {
    out.push_back(
        Printf("OTHERS USED %.0f %% OF THIS MACHINE MEANWHILE: alone it is faster, plan again",
               100 * sample.others));
  }
  out.push_back(
      "nobody else uses the machine; sampling, text and HTTP are not counted (about 2 %)");
  out.push_back("nothing is found in a cache but what --shared says, and no drafts are tried");
  if (record.n_experts > 0) out.push_back("tokens choose their experts evenly and independently");
  if (!where.other) return;
  const MachineText& other = *where.other;
  out.push_back(
      Printf("reads reach %.0f %% of the memory's label, and a core draws no more than "
             "the %.1f GB/s of one here",
             100 * kShareOfLabel, sample.rates.stream / sample.rates.threads / 1e9));
  if (other.sockets > 1) {
    out.push_back(
        Printf("one server over %d sockets gets %.0f %% of that: weights lie by socket, K and V "
               "on all of them (computed, not measured); where memory holds the model once per "
               "socket, a server for each behind a balancer serves more users",
               other.sockets, 100 * kShareAcrossSockets));
  }
  if (!other.clock_hz) {
    out.push_back("its cores are as fast as these (add \"2.4 GHz\" to --machine)");
  } else if (sample.clock_hz > 0) {
    out.push_back(Printf("these cores run at %.2f GHz, from the rate of VNNI on two units",
                         sample.clock_hz / 1e9));
  }
  if (!sample.has_int8) out.push_back("arithmetic is compared by cores and clock alone");
  out.push_back("figures for another machine are estimates: expect 30 % either way");
}

// Memory by what `hearth serve` would do with so much of it.
std::optional<EnginePlan> Fit(const Model& model, const PlanFlags& flags, const Where& where,
                              PlanRecord& record) {
  FitFigures& fit = record.fit;
  fit.usable_bytes = where.usable_bytes;
  fit.max_context = model.spec.max_context;
  fit.server_bytes = ServerMemoryBytes(
      static_cast<uint64_t>(Accounts::BudgetFor(where.usable_bytes)), record.rates.threads);
  EngineFlags engine = flags.engine;
  engine.hardware.beside_bytes = fit.server_bytes;
  const auto server = static_cast<uint64_t>(fit.server_bytes);
  Result<EnginePlan> planned =
      PlanEngine(model, engine, where.usable_bytes - std::min(where.usable_bytes, server));
  if (!planned.ok()) {
    fit.problem = planned.status().message();
    return std::nullopt;
  }
  const BackendPlan& backend = planned->backend;
  fit.weight_bytes = backend.weight_bytes;
  fit.kv_bytes = backend.kv.total_bytes();
  fit.other_bytes = backend.step_bytes + backend.result_bytes;
  if (backend.kv.has_full()) {
    record.costs.kv_bytes_per_token = backend.kv.group(0).block_bytes / backend.kv.block_tokens;
  }
  fit.kv_tokens = backend.kv.has_full() ? backend.kv.full_tokens() : model.spec.max_context;
  return std::move(*planned);
}

Status AddLoad(const PlanFlags& flags, const EnginePlan& engine, const ModelTimes& times,
               PlanRecord& record) {
  if (flags.load.users == 0) return Status();
  record.load = flags.load;
  record.target = flags.target;
  const ServerShape server{engine.backend.kv, engine.engine};
  const TimingModel timing = times.Timing();
  HEARTH_ASSIGN(record.one_server, SimulateLoad(flags.load, server, timing));
  HEARTH_ASSIGN(record.replicas, PlanReplicas(flags.load, server, timing, flags.target));
  return Status();
}

Result<PlanRecord> MakePlan(const PlanFlags& flags) {
  PlanRecord record;
  record.hearth = HEARTH_VERSION;
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  HEARTH_ASSIGN(const Model model, OpenModel(path));
  const ModelSpec& spec = model.spec;
  record.model = spec.name.empty() ? flags.model : spec.name;
  record.family = spec.family;
  record.costs = CostsOf(model);
  record.layers = static_cast<int>(spec.layers.size());
  record.n_experts = spec.n_experts;
  record.n_active_experts = spec.n_active_experts;
  HEARTH_ASSIGN(const Where where, FindWhere(flags, record.costs.weight_bytes, record));
  record.rates.threads = where.other ? where.other->cores : where.options.num_threads;
  const std::optional<EnginePlan> engine = Fit(model, flags, where, record);
  if (!engine) {
    HEARTH_ASSIGN(const PlanSample sample, SampleMachine(where.options));
    record.here = sample.rates;
    record.rates =
        where.other ? RatesOf(*where.other, sample.rates, sample.clock_hz) : sample.rates;
    return record;
  }
  const WorkModel work(model);
  const KvLayout& kv = engine->backend.kv;
  constexpr int kChunk = 512;
  HEARTH_ASSIGN(const PlanSample sample, SampleModel(model, where.options, work, kv, kChunk));
  record.here = record.rates = sample.rates;
  record.sampled_layers = sample.layers;
  record.sample_seconds = sample.seconds;
  record.others = sample.others;
  ModelTimes times = sample.times;
  if (where.other) {
    record.rates = RatesOf(*where.other, sample.rates, sample.clock_hz);
    times = OnMachine(sample.times, sample.rates, record.rates);
  }
  const PlanInput input{
      times, work, kv, kChunk, flags.engine.itl_target_ms * 1e-3, flags.engine.max_sequences};
  AddCases(input, record);
  AddCurves(input, record);
  AddSettings(input, record);
  AddHelps(input, record);
  record.headline = HeadlineOf(sample.times, times, record.rates, sample.loop,
                               LoopsPerStep(record.layers, record.n_experts));
  HEARTH_TRY(AddLoad(flags, *engine, times, record));
  Assume(where, sample, record);
  return record;
}

// Without a model: which of those on this machine would run, by the roofline alone.
Status PlanAll(const PlanFlags& flags) {
  HEARTH_ASSIGN(const BackendOptions options, OptionsFrom(flags.engine.hardware));
  HEARTH_ASSIGN(const PlanSample sample, SampleMachine(options));
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(ProcessEnvironment()));
  const Inventory inventory = TakeInventory(places);
  JsonArray rows;
  std::string text;
  for (const StoredModel& stored : inventory.models) {
    if (!stored.is_complete) continue;
    Result<Model> model = OpenModel(stored.path);
    if (!model.ok()) continue;
    const ModelCosts costs = CostsOf(*model);
    const bool fits = PlanEngine(*model, flags.engine, UsableMemoryBytes()).ok();
    const double rate = kUsualShare * sample.rates.stream / static_cast<double>(costs.decode_bytes);
    rows.push_back(JsonObject{{"name", stored.name},
                              {"bytes", stored.bytes},
                              {"fits", fits},
                              {"decode_tokens_per_second", rate}});
    text += fmt::format("{:<40} {:>10}  {:<5} {:>12.3g}\n", stored.name, HumanBytes(stored.bytes),
                        fits ? "yes" : "NO", rate);
  }
  if (flags.json) {
    PrintJson(JsonObject{{"schema", "hearth.plan.models"},
                         {"version", 1},
                         {"stream_bytes_per_second", sample.rates.stream},
                         {"models", std::move(rows)}});
    return Status();
  }
  PrintOut("{}: {} threads, {}; reads {:.1f} GB/s, {:.2f} TOP/s of int8; {:.1f} GiB usable\n\n",
           ProcessorName(), sample.rates.threads, options.isa, sample.rates.stream / 1e9,
           sample.rates.int8 / 1e12, InGib(static_cast<int64_t>(UsableMemoryBytes())));
  if (text.empty()) {
    PrintOut("No models on this machine yet: `hearth pull` lists names to download.\n");
    return Status();
  }
  PrintOut("{:<40} {:>10}  {:<5} {:>12}\n{}\n", "MODEL", "SIZE", "FITS", "~ tokens/s", text);
  PrintOut(
      "One user, from the bytes that a token reads; `hearth plan MODEL` runs a part of it and "
      "says more.\n");
  return Status();
}

Status Plan(const PlanFlags& flags) {
  if (flags.model.empty()) {
    if (!flags.machine.empty() || flags.load.users > 0 || !flags.html.empty()) {
      return Error(Code::kInvalid, "--machine, --users and --html need a MODEL");
    }
    return PlanAll(flags);
  }
  if (flags.load.shared >= flags.load.prompt) {
    return Error(Code::kInvalid, "--shared %d: expected fewer tokens than --prompt %d",
                 flags.load.shared, flags.load.prompt);
  }
  HEARTH_ASSIGN(PlanRecord record, MakePlan(flags));
  if (!flags.html.empty()) {
    record.date = TodayUtc();
    const std::string page = PlanPage(record);
    HEARTH_TRY(WriteFileAtomically(flags.html, std::as_bytes(std::span(page))));
  }
  if (flags.json) {
    PrintJson(PlanJson(record));
  } else {
    PrintOut(PlanText(record));
  }
  return Status();
}

void AddLoadFlags(CLI::App& plan, PlanFlags& flags) {
  plan.add_option("--users", flags.load.users,
                  "Number of people who ask, read, think and ask again; 0: no load is simulated")
      ->check(Between(0, 100'000))
      ->capture_default_str();
  plan.add_option("--prompt", flags.load.prompt,
                  "Mean length of their prompts, in tokens; they vary by half of it")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  plan.add_option("--reply", flags.load.reply,
                  "Mean length of the replies, in tokens; they vary by half of it")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  plan.add_option("--shared", flags.load.shared,
                  "Tokens at the start of every prompt that are alike, and so cached")
      ->check(Between(0, 1 << 20))
      ->capture_default_str();
  plan.add_option("--think", flags.load.think_s,
                  "Mean time between a reply's end and the next prompt, in seconds")
      ->check(Between(0.0, 1e6))
      ->capture_default_str();
  plan.add_option("--first-token", flags.target.first_token_s,
                  "Time to the first token that 95 of 100 replies must reach, in seconds")
      ->check(Between(0.001, 1e4))
      ->capture_default_str();
  plan.add_option("--gap", flags.target.gap_s,
                  "Time between tokens that 95 of 100 must reach, in seconds")
      ->check(Between(0.001, 1e4))
      ->capture_default_str();
}

}  // namespace

void AddPlan(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* plan = app.add_subcommand(
      "plan",
      "Predict whether a model fits, how fast it will be, for how many users and what would help, "
      "here or on another machine. Runs a part of the model for some seconds");
  plan->add_option("model", flags->model,
                   "Model to plan for: a name or a path; without it, all models on this machine "
                   "in a line each");
  plan->add_option("--machine", flags->machine,
                   "Another machine to predict for, such as \"2x8 cores, 2x8ch DDR5-4800, "
                   "avx512, 256 GB\"");
  AddLoadFlags(*plan, *flags);
  plan->add_option("--context", flags->engine.max_context,
                   "Context length, in tokens, as for `hearth serve`")
      ->check(Between(16, 1 << 27));
  plan->add_option("--kv-memory", flags->engine.kv_bytes,
                   "Memory for the KV cache, as for `hearth serve`")
      ->option_text("SIZE")
      ->transform(Size());
  AddKvType(*plan, flags->engine.hardware.kv_code);
  AddNumerics(*plan, flags->engine.hardware.numerics);
  AddIsa(*plan, flags->engine.hardware);
  AddThreads(*plan, flags->engine.hardware);
  plan->add_option("--html", flags->html, "HTML file for the plan with charts");
  plan->add_flag("--json", flags->json, "Print JSON");
  const CLI::App* fleet = AddPlanFleet(*plan, chosen);
  plan->callback([&chosen, flags, fleet] {
    if (fleet->parsed()) return;  // its own callback came before this one
    chosen = [flags] { return Plan(*flags); };
  });
}

}  // namespace hearth
