// SPDX-License-Identifier: Apache-2.0
// hearth plan fleet: how many replicas a load needs, how requests are best routed, and what
// failures and deploys do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <memory>

#include "app/cmd_plan.h"
#include "app/compute_flags.h"
#include "app/flag_checks.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/open_engine.h"
#include "app/open_model.h"
#include "app/plan_sample.h"
#include "app/print.h"
#include "app/today.h"
#include "base/terminal.h"
#include "plan/fleet.h"
#include "platform/file.h"
#include "platform/topology.h"
#include "platform/usage.h"

namespace hearth {
namespace {

constexpr int kMostReplicas = 4096;
constexpr size_t kMostTraceBytes = size_t{2} << 30;

struct FleetPlanFlags {
  std::string model, machine, bench, trace, log, html;
  double prefill_rate = 0, decode_rate = 0;
  int decode_batch = 32;
  int64_t kv_tokens = 0;
  int context = 0, max_sequences = 64;
  FleetChats chats;
  FleetSetup setup{.replicas = 0};
  std::optional<FleetPolicy> policy;
  LoadTarget95 target;
  double tier_mb_per_s = 0, kv_bytes_per_token = 24'576;
  int deploy_percent = 0, failures = 0;
  double price = 0;
  bool json = false;
  EngineFlags engine;
};

struct PlannedServer {
  ServerShape shape;
  TimingModel timing;
  std::string words;
  std::vector<std::string> assumptions;
};

// A server of which only rates are known: `tokens` in its cache.
ServerShape ShapeOf(const FleetPlanFlags& flags) {
  ServerShape shape;
  const int block = shape.kv.block_tokens;
  shape.kv.groups = {{.window = 0,
                      .block_bytes = static_cast<int64_t>(flags.kv_bytes_per_token) * block,
                      .num_blocks = static_cast<int>(flags.kv_tokens / block)}};
  SchedulerOptions& scheduler = shape.options.scheduler;
  scheduler.max_sequences = flags.max_sequences;
  scheduler.max_step_tokens = 512;
  scheduler.max_context = flags.context > 0
                              ? flags.context
                              : static_cast<int>(std::min<int64_t>(flags.kv_tokens, 131072));
  return shape;
}

Result<PlannedServer> FromRates(const FleetPlanFlags& flags) {
  if (flags.prefill_rate <= 0 || flags.decode_rate <= 0 || flags.kv_tokens <= 0) {
    return Error(Code::kInvalid,
                 "expected a MODEL to run a part of, or --bench FILE and --kv-tokens, or "
                 "--prefill-rate, --decode-rate and --kv-tokens");
  }
  PlannedServer out{
      ShapeOf(flags),
      TimingOfRates(flags.prefill_rate, flags.decode_rate, flags.decode_batch),
      fmt::format("{:g} prompt tokens/s, {:g} reply tokens/s of {} together, {} tokens of "
                  "KV cache",
                  flags.prefill_rate, flags.decode_rate, flags.decode_batch, flags.kv_tokens),
      {}};
  out.assumptions.push_back(
      "a step takes a fixed time and so much for each token, whatever the context's length");
  return out;
}

Result<PlannedServer> FromBench(const FleetPlanFlags& flags) {
  if (flags.kv_tokens <= 0) return Error(Code::kInvalid, "--bench needs --kv-tokens");
  HEARTH_ASSIGN(const std::string text, ReadTextFile(flags.bench, size_t{64} << 20));
  HEARTH_ASSIGN(const Json json, ParseJson(text));
  Result<TimingModel> timing = TimingModel::FromBench(json);
  if (!timing.ok()) {
    return Error(timing.status().code(), "%s: %s", flags.bench.c_str(),
                 timing.status().message().c_str());
  }
  return PlannedServer{
      ShapeOf(flags),
      std::move(*timing),
      fmt::format("measured in {}, {} tokens of KV cache", flags.bench, flags.kv_tokens),
      {}};
}

Result<PlannedServer> FromModel(const FleetPlanFlags& flags) {
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  HEARTH_ASSIGN(const Model model, OpenModel(path));
  EngineFlags engine = flags.engine;
  engine.max_context = flags.context;
  engine.max_sequences = flags.max_sequences;
  std::optional<MachineText> other;
  uint64_t usable = UsableMemoryBytes();
  if (!flags.machine.empty()) {
    HEARTH_ASSIGN(other, ParseMachine(flags.machine));
    if (other->memory_bytes > 0) usable = other->memory_bytes;
  }
  HEARTH_ASSIGN(const BackendOptions options, OptionsFrom(engine.hardware));
  HEARTH_ASSIGN(const EnginePlan planned, PlanEngine(model, engine, usable));
  const WorkModel work(model);
  constexpr int kChunk = 512;
  HEARTH_ASSIGN(const PlanSample sample,
                SampleModel(model, options, work, planned.backend.kv, kChunk));
  ModelTimes times = sample.times;
  if (other) {
    times = OnMachine(sample.times, sample.rates, RatesOf(*other, sample.rates, sample.clock_hz));
  }
  PlannedServer out{{planned.backend.kv, planned.engine}, times.Timing(), "", {}};
  const std::string name = model.spec.name.empty() ? flags.model : model.spec.name;
  out.words = name + " on " + (other ? flags.machine : ProcessorName());
  out.assumptions.push_back(
      fmt::format("a part of {} ran here for {:.0f} s", name, sample.seconds));
  if (other) out.assumptions.push_back("figures for another machine: expect 30 % either way");
  return out;
}

Result<PlannedServer> FindServer(const FleetPlanFlags& flags) {
  if (!flags.model.empty()) return FromModel(flags);
  if (!flags.bench.empty()) return FromBench(flags);
  return FromRates(flags);
}

// The load in words, and how to have it anew for every run.
Result<std::function<FleetLoad()>> FindLoad(const FleetPlanFlags& flags, std::string& words) {
  if (flags.trace.empty() && flags.log.empty()) {
    const FleetChats chats = flags.chats;
    words = fmt::format(
        "{:g} requests/s, chats of {:g} turns, {} + {} tokens a turn after {} of {} system "
        "prompts, "
        "{:g} s to think, {} requests",
        chats.rate, chats.turns, chats.message, chats.reply, chats.system, chats.apps,
        chats.think_s, chats.requests);
    return std::function<FleetLoad()>([chats] { return FleetLoad(chats); });
  }
  const std::string& path = flags.trace.empty() ? flags.log : flags.trace;
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path, kMostTraceBytes));
  Result<std::vector<FleetAsk>> read =
      flags.trace.empty() ? ReadRequestLog(text) : ReadMooncake(text);
  if (!read.ok()) {
    return Error(read.status().code(), "%s: %s", path.c_str(), read.status().message().c_str());
  }
  words = fmt::format("{} recorded requests of {}", read->size(), path);
  const auto asks = std::make_shared<const std::vector<FleetAsk>>(std::move(*read));
  return std::function<FleetLoad()>([asks] { return FleetLoad(*asks); });
}

void Assume(const FleetRecord& record, const FleetPlanFlags& flags, std::vector<std::string>& out) {
  bool modelled = false, real = false;
  for (const auto* list : {&record.search.tried, &record.policies, &record.incidents}) {
    for (const FleetOutcome& o : *list) (o.is_modelled ? modelled : real) = true;
  }
  if (real)
    out.push_back("replicas are the engine's own scheduler and cache under a virtual clock");
  if (modelled) {
    out.push_back(
        fmt::format("more than {} replicas, and those with a tier, are modelled: the engine's own "
                    "chunk control, "
                    "first come first served, pages of {} tokens ({} above {} replicas)",
                    kMostEngineReplicas, kDefaultBlockTokens, kCoarsePage, kMostFinePages));
  }
  out.push_back("the first tenth of the requests fills caches and is not counted");
  out.push_back(
      "balancer, network, HTTP and tokenizing take no time; nobody leaves before the end");
  out.push_back("streams that break are asked again from their beginning by their clients");
  if (!flags.trace.empty()) {
    out.push_back("the trace has no sessions: its keys are the second hash, or the only one");
  }
  if (!flags.log.empty()) {
    out.push_back("the log has no sessions: turns are matched by key, length and what was cached");
  }
}

Result<FleetSetup> SetupOf(const FleetPlanFlags& flags) {
  FleetSetup setup = flags.setup;
  if (setup.tier.tokens > 0) {
    if (flags.tier_mb_per_s <= 0) {
      return Error(Code::kInvalid, "--tier-tokens needs --tier-rate, in MB/s");
    }
    setup.tier.tokens_per_s = 1e6 * flags.tier_mb_per_s / flags.kv_bytes_per_token;
  }
  if (setup.replicas > 0 && setup.fast_replicas > setup.replicas) {
    return Error(Code::kInvalid, "--fast-replicas %d: expected at most --replicas %d",
                 setup.fast_replicas, setup.replicas);
  }
  return setup;
}

// Failure and deploy happen when half of the requests have come.
FleetIncident IncidentOf(const FleetPlanFlags& flags, const FleetOutcome& quiet) {
  FleetIncident incident = flags.setup.incident;
  const double middle_s =
      quiet.moments.empty() ? 0 : quiet.moments[quiet.moments.size() / 2].from_s;
  if (flags.failures > 0) incident.fail_at_s = middle_s;
  incident.fail_count = flags.failures;
  if (flags.deploy_percent > 0) incident.deploy_at_s = middle_s;
  incident.wave_share = flags.deploy_percent / 100.0;
  return incident;
}

Status Simulate(const FleetPlanFlags& flags, FleetSetup setup, const PlannedServer& server,
                const std::function<FleetLoad()>& load, FleetRecord& record) {
  if (setup.replicas == 0) {
    HEARTH_ASSIGN(record.search, FindReplicas(load, setup, kMostReplicas, server.shape,
                                              server.timing, flags.target));
    setup.replicas = record.search.tried.back().replicas;
    if (record.search.replicas > 0) setup.replicas = record.search.replicas;
  }
  for (const FleetPolicy policy : kFleetPolicies) {
    if (flags.policy && *flags.policy != policy) continue;
    setup.policy = policy;
    HEARTH_ASSIGN(FleetOutcome outcome, SimulateFleet(load(), setup, server.shape, server.timing));
    record.policies.push_back(std::move(outcome));
  }
  if (flags.failures == 0 && flags.deploy_percent == 0) return Status();
  setup.policy = flags.policy.value_or(FleetPolicy::kSession);
  setup.incident = record.incident = IncidentOf(flags, record.policies.back());
  HEARTH_ASSIGN(FleetOutcome outcome, SimulateFleet(load(), setup, server.shape, server.timing));
  record.incidents.push_back(std::move(outcome));
  return Status();
}

Status PlanFleet(const FleetPlanFlags& flags) {
  if (!flags.trace.empty() && !flags.log.empty()) {
    return Error(Code::kInvalid, "--trace and --log: expected one of them");
  }
  FleetRecord record;
  record.hearth = HEARTH_VERSION;
  record.target = flags.target;
  record.price = flags.price;
  HEARTH_ASSIGN(const FleetSetup setup, SetupOf(flags));
  HEARTH_ASSIGN(const std::function<FleetLoad()> load, FindLoad(flags, record.load));
  HEARTH_ASSIGN(const PlannedServer server, FindServer(flags));
  record.replica = server.words;
  HEARTH_TRY(Simulate(flags, setup, server, load, record));
  record.assumptions = server.assumptions;
  Assume(record, flags, record.assumptions);
  record.peak_bytes = ReadResident().peak;
  if (!flags.html.empty()) {
    record.date = TodayUtc();
    const std::string page = FleetPage(record);
    HEARTH_TRY(WriteFileAtomically(flags.html, std::as_bytes(std::span(page))));
  }
  if (flags.json) {
    PrintJson(FleetJson(record));
  } else {
    PrintOut(FleetText(record));
  }
  return Status();
}

void AddReplicaFlags(CLI::App& sub, FleetPlanFlags& flags) {
  sub.add_option("model", flags.model,
                 "Model of the replicas, of which a part is run here: a name or a path");
  sub.add_option("--machine", flags.machine,
                 "Another machine than this for the replicas, as for `hearth plan`");
  sub.add_option("--bench", flags.bench,
                 "Instead of a model: a file of `hearth bench --json` from a replica's machine");
  sub.add_option("--prefill-rate", flags.prefill_rate,
                 "Instead of a model: prompt tokens per second of a replica")
      ->check(Between(0.1, 1e7));
  sub.add_option("--decode-rate", flags.decode_rate,
                 "Instead of a model: reply tokens per second of --decode-batch replies together")
      ->check(Between(0.1, 1e7));
  sub.add_option("--decode-batch", flags.decode_batch, "Replies that --decode-rate is for")
      ->check(Between(1, 4096))
      ->capture_default_str();
  sub.add_option(
         "--kv-tokens", flags.kv_tokens,
         "Tokens in the KV cache of a replica; default: as `hearth serve` would take for the "
         "model")
      ->check(Between(int64_t{1024}, int64_t{1} << 34));
  sub.add_option("--context", flags.context, "Context length, in tokens, as for `hearth serve`")
      ->check(Between(16, 1 << 27));
  sub.add_option("--max-sequences", flags.max_sequences,
                 "Maximum number of requests that a replica runs at a time")
      ->check(Between(1, 4096))
      ->capture_default_str();
  sub.add_option("--kv-memory", flags.engine.kv_bytes,
                 "Memory for the model's KV cache, as for `hearth serve`")
      ->option_text("SIZE")
      ->transform(Size());
}

void AddFleetFlags(CLI::App& sub, FleetPlanFlags& flags) {
  FleetSetup& setup = flags.setup;
  sub.add_option("--replicas", setup.replicas,
                 "Number of replicas; 0: the fewest that meet the targets with session hashing")
      ->check(Between(0, kMostReplicas))
      ->capture_default_str();
  sub.add_option("--fast-replicas", setup.fast_replicas,
                 "Of the replicas, how many are --fast-times as fast, such as GPUs")
      ->check(Between(0, kMostReplicas))
      ->capture_default_str();
  sub.add_option("--fast-times", setup.fast_times, "Speed of the fast replicas beside the others")
      ->check(Between(0.01, 1000.0))
      ->capture_default_str();
  const std::map<std::string, FleetPolicy> policies{{"round-robin", FleetPolicy::kRoundRobin},
                                                    {"least", FleetPolicy::kLeast},
                                                    {"session", FleetPolicy::kSession},
                                                    {"precise", FleetPolicy::kPrecise}};
  sub.add_option(
         "--policy", flags.policy,
         "How requests are routed: session as `hearth fleet haproxy` does it, precise by what "
         "each replica has cached; default: all, one after the other")
      ->type_name("MODE")
      ->transform(NamedValue(policies));
  sub.add_option(
         "--bounded-load", setup.bounded_load,
         "Load that one replica may have with session hashing, in percent of the mean; 0: no "
         "bound")
      ->check(Between(0, 10000))
      ->capture_default_str();
  sub.add_flag("--modelled", setup.uses_model,
               "Model replicas also where the real scheduler would be run (up to 16 replicas)");
  sub.add_option("--tier-tokens", setup.tier.tokens,
                 "Tokens that a cache below memory holds, of each replica or with --tier-shared of "
                 "all; 0: there is none")
      ->check(Between(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  sub.add_flag("--tier-shared", setup.tier.is_shared, "The cache below memory is one for all");
  sub.add_option("--tier-rate", flags.tier_mb_per_s,
                 "Rate at which it brings blocks to a replica, in MB/s")
      ->check(Between(0.1, 1e6));
  sub.add_option("--kv-bytes", flags.kv_bytes_per_token, "Bytes of K and V per token in it")
      ->check(Between(1.0, 1e8))
      ->capture_default_str();
  sub.add_option("--price", flags.price, "Price of a replica and hour, in any currency")
      ->check(Between(0.0, 1e6));
}

void AddIncidentFlags(CLI::App& sub, FleetPlanFlags& flags) {
  FleetIncident& incident = flags.setup.incident;
  sub.add_option("--fail", flags.failures, "Number of replicas that die at half of the load")
      ->check(Between(0, kMostReplicas))
      ->capture_default_str();
  sub.add_option(
         "--deploy", flags.deploy_percent,
         "Replace all replicas from half of the load on, so many percent at a time; 0: none")
      ->check(Between(0, 100))
      ->capture_default_str();
  sub.add_option("--drain", incident.drain_s,
                 "Time that a replica finishes its requests, in seconds")
      ->check(Between(0.0, 1e5))
      ->capture_default_str();
  sub.add_option("--restart", incident.restart_s,
                 "Time until a replica that ended is back with an empty memory, in seconds")
      ->check(Between(0.0, 1e6))
      ->capture_default_str();
}

void AddChatFlags(CLI::App& sub, FleetPlanFlags& flags) {
  FleetChats& chats = flags.chats;
  sub.add_option("--trace", flags.trace,
                 "Requests to play: JSON lines with timestamp, input_length, output_length and "
                 "hash_ids, as Mooncake publishes them");
  sub.add_option("--log", flags.log, "Requests to play: a file of `hearth serve --log`");
  sub.add_option("--rate", chats.rate, "Requests per second, on average")
      ->check(Between(0.001, 1e6))
      ->capture_default_str();
  sub.add_option("--requests", chats.requests, "Number of requests to simulate")
      ->check(Between(int64_t{10}, int64_t{100'000'000}))
      ->capture_default_str();
  sub.add_option("--turns", chats.turns, "Mean number of turns of a chat")
      ->check(Between(1.0, 1000.0))
      ->capture_default_str();
  sub.add_option("--message", chats.message, "Mean length of a user's message, in tokens")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  sub.add_option("--reply", chats.reply, "Mean length of a reply, in tokens")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  sub.add_option("--system", chats.system, "Length of a system prompt, in tokens")
      ->check(Between(0, 1 << 20))
      ->capture_default_str();
  sub.add_option("--apps", chats.apps, "Number of different system prompts; few have most chats")
      ->check(Between(1, 100'000))
      ->capture_default_str();
  sub.add_option("--think", chats.think_s,
                 "Mean time between a reply's end and the next message, in seconds")
      ->check(Between(0.0, 1e6))
      ->capture_default_str();
  sub.add_option("--seed", chats.seed, "Seed of the random numbers")->capture_default_str();
}

}  // namespace

CLI::App* AddPlanFleet(CLI::App& plan, Command& chosen) {
  auto flags = std::make_shared<FleetPlanFlags>();
  CLI::App* sub = plan.add_subcommand(
      "fleet",
      "Simulate many replicas behind a balancer: how many a load needs, how requests are best "
      "routed, what failures and deploys do");
  AddReplicaFlags(*sub, *flags);
  AddFleetFlags(*sub, *flags);
  AddChatFlags(*sub, *flags);
  AddIncidentFlags(*sub, *flags);
  sub->add_option("--first-token", flags->target.first_token_s,
                  "Time to the first token that 95 of 100 replies must reach, in seconds")
      ->check(Between(0.001, 1e4))
      ->capture_default_str();
  sub->add_option("--gap", flags->target.gap_s,
                  "Time between tokens that 95 of 100 must reach, in seconds")
      ->check(Between(0.001, 1e4))
      ->capture_default_str();
  AddIsa(*sub, flags->engine.hardware);
  AddThreads(*sub, flags->engine.hardware);
  AddNumerics(*sub, flags->engine.hardware.numerics);
  sub->add_option("--html", flags->html, "HTML file for the result with charts");
  sub->add_flag("--json", flags->json, "Print JSON");
  sub->callback([&chosen, flags] { chosen = [flags] { return PlanFleet(*flags); }; });
  return sub;
}

}  // namespace hearth
