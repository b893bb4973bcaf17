// SPDX-License-Identifier: Apache-2.0
// hearth bench load: chats on an engine in this process or on a server, and how they fared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/flag_checks.h"
#include "app/model_argument.h"
#include "app/numerics_flag.h"
#include "app/open_engine.h"
#include "app/open_model.h"
#include "app/print.h"
#include "app/server_key.h"
#include "app/today.h"
#include "base/mask_secrets.h"
#include "engine/engine.h"
#include "load/output.h"
#include "load/url.h"
#include "platform/file.h"
#include "platform/usage.h"

namespace hearth {
namespace {

struct Flags {
  std::string model, json, html;
  LoadOptions load;
  LongPromptOptions beside;
  int long_prompt = 0;
  double itl_target_ms = 200;
  int kv_tokens = 0;
  BackendFlags hardware;
  UrlOptions url;
  std::string api;  // empty: chat, or completions for token ids
};

// KV memory for everybody at once, unless told otherwise.
int KvTokens(const Flags& flags, int block_tokens) {
  if (flags.kv_tokens > 0) return flags.kv_tokens;
  if (flags.long_prompt > 0) {
    return flags.beside.prompts * (flags.long_prompt + 16 + block_tokens) +
           flags.beside.streams * 2048;
  }
  const int at_once =
      flags.load.rate > 0 ? std::min(64, flags.load.num_chats()) : flags.load.clients;
  // What ended stays cached for the next turn, so the room is for twice as many.
  return 2 * at_once * (LongestSequence(flags.load) + 2 * block_tokens);
}

Result<std::shared_ptr<Backend>> Open(const Flags& flags, BackendOptions options,
                                      LoadReport& report, SchedulerOptions& scheduler) {
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  HEARTH_ASSIGN(const Model model, OpenModelFor(path, "cpu"));
  report.model = model.spec.name.empty() ? flags.model : model.spec.name;
  scheduler.max_context = model.spec.max_context;
  scheduler.experts = ExpertsOf(model.spec);
  options.max_rows = WidestStepRows(scheduler);
  HEARTH_ASSIGN(BackendPlan plan, PlanBackend(model, options));
  const int64_t blocks = plan.kv.BlocksUpTo(KvTokens(flags, plan.kv.block_tokens));
  SetBlocks(plan.kv, static_cast<int>(blocks));
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenBackend(model, plan));
  return std::shared_ptr<Backend>(std::move(backend));
}

// Tokens that a sequence has in the middle of an answer, on average.
int MeanContext(const std::vector<LoadReply>& replies) {
  double sum = 0, count = 0;
  for (const LoadReply& reply : replies) {
    const auto said = static_cast<double>(reply.tokens.size());
    sum += said * (reply.num_prompt + said / 2);
    count += said;
  }
  return count > 0 ? static_cast<int>(sum / count) : 0;
}

Status Play(const Flags& flags, LoadTarget& target, const LoadClock& clock, LoadReport& report) {
  LoadBell bell;
  if (flags.long_prompt == 0) {
    report.load = RunLoad(target, flags.load, clock, bell);
    bool is_answered = false;
    for (const LoadReply& reply : report.load.replies) {
      is_answered = is_answered || !reply.tokens.empty();
      if (!reply.problem.empty()) report.load.refusal = reply.problem;
    }
    if (is_answered) return Status();
    return Error(Code::kExhausted, "no request succeeded: %s", report.load.refusal.c_str());
  }
  report.long_prompt = flags.beside;
  report.long_prompt->prompt_tokens = flags.long_prompt;
  const int total = flags.beside.prompts * flags.long_prompt;
  report.long_prompt->on_progress = [total](double since_s, int computed) {
    if (computed < 0) {
      PrintError("%s",
                 fmt::format("{:6.0f} s: waiting for the prompt's first token\n", since_s).c_str());
      return;
    }
    const double left_s = computed > 0 ? since_s * (total - computed) / computed : 0;
    PrintError("%s", fmt::format("{:6.0f} s: {} of {} prompt tokens, about {:.0f} s to go\n",
                                 since_s, computed, total, left_s)
                         .c_str());
  };
  HEARTH_ASSIGN(report.beside, RunLongPrompt(target, *report.long_prompt, clock, bell));
  return Status();
}

Status Write(const Flags& flags, const LoadReport& report) {
  PrintOut("{}", LoadTable(report));
  const auto write = [](const std::string& path, const std::string& text) {
    return path.empty() ? Status() : WriteFileAtomically(path, std::as_bytes(std::span(text)));
  };
  HEARTH_TRY(write(flags.json, WriteJson(LoadJson(report), 1) + "\n"));
  return write(flags.html, LoadPage(report));
}

void FindSteady(const LoadOptions& load, LoadReport& report) {
  if (load.rate > 0 || load.think_s > 0 || report.load.num_refused > 0) return;
  const std::optional<LoadWindow> window =
      SteadyWindow(report.load.replies, load.clients, load.num_chats());
  if (window) report.steady = RatesIn(*window, report.load.replies, report.steps);
}

Status LoadUrl(const Flags& flags, LoadReport& report) {
  UrlOptions options = flags.url;
  options.model = report.model = flags.model;
  options.is_chat = flags.api.empty() ? options.vocab_size == 0 : flags.api == "chat";
  HEARTH_ASSIGN(options.key, ServerKey(""));
  if (options.vocab_size > 0 && flags.long_prompt == 0 && flags.load.turns > 1) {
    return Error(Code::kInvalid,
                 "--vocab-size needs --long-prompt or --turns 1: later turns repeat the answers, "
                 "and servers do not return their token ids");
  }
  report.url = MaskSecretValue(options.url);
  report.date = TodayUtc();
  HEARTH_ASSIGN(const std::unique_ptr<LoadTarget> target, MakeUrlTarget(options));
  const LoadClock clock;
  HEARTH_TRY(Play(flags, *target, clock, report));
  if (flags.long_prompt == 0) FindSteady(flags.load, report);
  return Write(flags, report);
}

Status Load(const Flags& flags) {
  LoadReport report;
  report.options = flags.load;
  report.itl_target_s = flags.itl_target_ms * 1e-3;
  if (!flags.url.url.empty()) return LoadUrl(flags, report);
  if (flags.model.empty()) return Error(Code::kInvalid, "expected --model or --url, found neither");
  HEARTH_ASSIGN(const BackendOptions wanted, OptionsFrom(flags.hardware));
  report.isa = wanted.isa;
  report.num_threads = wanted.num_threads;
  report.processor = ProcessorName();
  report.date = TodayUtc();
  EngineOptions options;
  HEARTH_ASSIGN(const std::shared_ptr<Backend> backend,
                Open(flags, wanted, report, options.scheduler));
  options.scheduler.itl_target_us = static_cast<int64_t>(1e3 * flags.itl_target_ms);
  options.scheduler.max_step_tokens = wanted.max_step_tokens;
  options.admission.max_wait_s = 1e9;  // a load waits as long as it takes
  const LoadClock clock;
  auto metered = std::make_unique<MeteredBackend>(backend, clock);
  const auto steps = metered->steps();
  const CpuTime before = ReadCpuTime();
  {
    Engine engine(std::move(metered), options);
    const std::unique_ptr<LoadTarget> target = MakeEngineTarget(engine, backend->vocab_size());
    HEARTH_TRY(Play(flags, *target, clock, report));
  }
  report.steps = *steps;
  if (flags.long_prompt == 0 && flags.load.rate == 0) {
    FindSteady(flags.load, report);
    report.mean_context = report.steady ? static_cast<int>(report.steady->mean_context)
                                        : MeanContext(report.load.replies);
    constexpr int kSteps = 24;
    HEARTH_ASSIGN(const double rate,
                  BackendRate(*backend, flags.load.clients, report.mean_context, kSteps));
    report.own_rate = rate;
  }
  report.others = OthersShare(before, ReadCpuTime());
  return Write(flags, report);
}

void AddUrl(CLI::App& sub, Flags& flags) {
  UrlOptions& url = flags.url;
  sub.add_option(
      "--url", url.url,
      "URL of an OpenAI-compatible server to measure instead of an engine in this process. --model "
      "is then the model name in requests; an API key is read from HEARTH_API_KEY");
  sub.add_option("--api", flags.api, "API to use; default: chat, or completions with --vocab-size")
      ->check(CLI::IsMember({"chat", "completions"}));
  sub.add_option("--vocab-size", url.vocab_size,
                 "Send random token ids below this number instead of words, for prompts of exact "
                 "length; needs --url, and --long-prompt or --turns 1")
      ->check(Between(2, 1 << 24));
  sub.add_flag_callback(
      "--heed-eos", [to = &url] { to->ignores_end = false; },
      "Let the model end its answers: do not send ignore_eos");
}

void AddSizes(CLI::App& sub, Flags& flags) {
  LoadOptions& load = flags.load;
  const auto add = [&](const char* name, int& value, int least, const char* what) {
    sub.add_option(name, value, what)->check(Between(least, 1 << 24))->capture_default_str();
  };
  add("--turns", load.turns, 1, "Questions per chat");
  add("--apps", load.apps, 1, "Number of different preambles shared by the chats");
  add("--preamble-tokens", load.preamble_tokens, 2, "Mean length of a preamble, in tokens");
  add("--user-tokens", load.user_tokens, 1, "Mean length of a question, in tokens");
  add("--answer-tokens", load.answer_tokens, 1, "Mean length of an answer, in tokens");
  add("--streams", flags.beside.streams, 1, "Number of running replies beside --long-prompt");
  add("--prompts", flags.beside.prompts, 1,
      "Number of long prompts that arrive at once, with --long-prompt");
  sub.add_option("--think", load.think_s,
                 "Mean time between an answer and the next question, in seconds")
      ->check(Between(0.0, 3600.0));
  sub.add_option("--seed", load.seed, "Random seed; the same seed gives the same chats")
      ->capture_default_str();
}

}  // namespace

void AddBenchLoad(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* sub =
      bench.add_subcommand("load",
                           "Simulate chats on an engine or a server; measure time to first token, "
                           "time between tokens, throughput and cache hits");
  sub->add_option("--model", flags->model,
                  "Model file or directory, or a name that `hearth list` shows");
  AddUrl(*sub, *flags);
  CLI::Option* clients =
      sub->add_option("--clients", flags->load.clients,
                      "Number of concurrent chats; a new one starts when one ends")
          ->check(Between(1, 4096))
          ->capture_default_str();
  sub->add_option("--rate", flags->load.rate,
                  "Mean number of new chats per second, at random times, instead of --clients")
      ->check(Between(1e-6, 1e6))
      ->excludes(clients);
  sub->add_option("--chats", flags->load.chats,
                  "Total number of chats; default: two per client, or 20 with --rate")
      ->check(Between(1, 1 << 24));
  AddSizes(*sub, *flags);
  sub->add_option("--long-prompt", flags->long_prompt,
                  "Length of a long prompt, in tokens, that arrives while replies are running; "
                  "measured instead of chats")
      ->check(Between(1, 1 << 24));
  sub->add_option("--time-limit", flags->beside.limit_s, "Time limit of --long-prompt, in seconds")
      ->check(Between(1.0, 86400.0))
      ->capture_default_str();
  sub->add_option(
         "--itl-target", flags->itl_target_ms,
         "Target maximum gap between streamed tokens, in ms; with --url only for comparison")
      ->check(Between(1.0, 1e6))
      ->capture_default_str();
  sub->add_option("--kv-tokens", flags->kv_tokens,
                  "KV cache size, in tokens; default: enough for all chats")
      ->check(Between(256, 1 << 28));
  sub->add_option("--json", flags->json, "JSON file for all measurements");
  sub->add_option("--html", flags->html, "HTML file for a report with charts");
  AddIsa(*sub, flags->hardware);
  AddThreads(*sub, flags->hardware);
  AddNumerics(*sub, flags->hardware.numerics);
  sub->callback([&chosen, flags] { chosen = [flags] { return Load(*flags); }; });
}

}  // namespace hearth
