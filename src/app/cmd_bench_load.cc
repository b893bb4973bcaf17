// SPDX-License-Identifier: Apache-2.0
// hearth bench load: chats on an engine in this process, and how they fared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "app/commands.h"
#include "app/load_output.h"
#include "app/open_backend.h"
#include "app/open_model.h"
#include "app/today.h"
#include "engine/engine.h"
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
  CpuFlags cpu;
};

// KV memory for everybody at once, unless told otherwise.
int KvTokens(const Flags& flags) {
  if (flags.kv_tokens > 0) return flags.kv_tokens;
  if (flags.long_prompt > 0) return flags.long_prompt + 16 + flags.beside.streams * 2048;
  const int at_once =
      flags.load.rate > 0 ? std::min(64, flags.load.num_chats()) : flags.load.clients;
  // What ended stays cached for the next turn, so the room is for twice as many.
  return 2 * at_once * (LongestSequence(flags.load) + 2 * kBlockTokens);
}

Result<std::shared_ptr<Backend>> Open(const Flags& flags, CpuOptions& options, LoadReport& report,
                                      int& max_context) {
  HEARTH_ASSIGN(const Model model, OpenModelFor(flags.model, "cpu"));
  report.model = model.spec.name.empty() ? flags.model : model.spec.name;
  max_context = model.spec.max_context;
  const int blocks = (KvTokens(flags) + kBlockTokens - 1) / kBlockTokens;
  options.full_blocks = options.window_blocks = blocks;
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenCpuBackend(model, options));
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
    if (report.load.replies.empty()) {
      return Error(Code::kExhausted, "all requests were refused: %s", report.load.refusal.c_str());
    }
    return Status();
  }
  report.long_prompt = flags.beside;
  report.long_prompt->prompt_tokens = flags.long_prompt;
  HEARTH_ASSIGN(report.beside, RunLongPrompt(target, *report.long_prompt, clock, bell));
  return Status();
}

Status Load(const Flags& flags) {
  LoadReport report;
  report.options = flags.load;
  report.itl_target_s = flags.itl_target_ms * 1e-3;
  CpuOptions cpu;
  HEARTH_TRY(FillFrom(flags.cpu, cpu));
  report.isa = NameOf(cpu.isa);
  report.num_threads = cpu.num_threads;
  report.processor = ProcessorName();
  report.date = TodayUtc();
  EngineOptions options;
  HEARTH_ASSIGN(const std::shared_ptr<Backend> backend,
                Open(flags, cpu, report, options.scheduler.max_context));
  options.scheduler.itl_target_us = static_cast<int64_t>(1e3 * flags.itl_target_ms);
  options.scheduler.max_step_tokens = cpu.max_step_tokens;
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
    report.mean_context = MeanContext(report.load.replies);
    constexpr int kSteps = 24;
    HEARTH_ASSIGN(const double rate,
                  BackendRate(*backend, flags.load.clients, report.mean_context, kSteps));
    report.own_rate = rate;
  }
  report.others = OthersShare(before, ReadCpuTime());
  fmt::print("{}", LoadTable(report));
  const auto write = [](const std::string& path, const std::string& text) {
    return path.empty() ? Status() : WriteFileAtomically(path, std::as_bytes(std::span(text)));
  };
  HEARTH_TRY(write(flags.json, WriteJson(LoadJson(report), 1) + "\n"));
  return write(flags.html, LoadPage(report));
}

void AddSizes(CLI::App& sub, Flags& flags) {
  LoadOptions& load = flags.load;
  const auto add = [&](const char* name, int& value, int least, const char* what) {
    sub.add_option(name, value, what)->check(CLI::Range(least, 1 << 24))->capture_default_str();
  };
  add("--turns", load.turns, 1, "Questions in each chat");
  add("--apps", load.apps, 1, "Preambles that chats share");
  add("--preamble-tokens", load.preamble_tokens, 2, "Mean length of a preamble");
  add("--user-tokens", load.user_tokens, 1, "Mean length of a question");
  add("--answer-tokens", load.answer_tokens, 1, "Mean length of an answer");
  add("--streams", flags.beside.streams, 1, "With --long-prompt: streams that decode meanwhile");
  sub.add_option("--think", load.think_s, "Mean seconds between an answer and the next question")
      ->check(CLI::Range(0.0, 3600.0));
  sub.add_option("--seed", load.seed, "Same seed, same chats")->capture_default_str();
}

}  // namespace

void AddBenchLoad(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* sub = bench.add_subcommand(
      "load", "Chats on an engine in this process: first token, between tokens, throughput, hits");
  sub->add_option("--model", flags->model, "Model file or directory")->required();
  CLI::Option* clients = sub->add_option("--clients", flags->load.clients,
                                         "Chats at a time; the next one starts when "
                                         "one ends")
                             ->check(CLI::Range(1, 4096))
                             ->capture_default_str();
  sub->add_option("--rate", flags->load.rate, "Instead: so many new chats per second, at random")
      ->check(CLI::Range(1e-6, 1e6))
      ->excludes(clients);
  sub->add_option("--chats", flags->load.chats, "In all; default two per client, 20 with --rate")
      ->check(CLI::Range(1, 1 << 24));
  AddSizes(*sub, *flags);
  sub->add_option("--long-prompt", flags->long_prompt,
                  "Instead of chats: streams decode and a prompt of so many tokens arrives")
      ->check(CLI::Range(1, 1 << 24));
  sub->add_option("--itl-target", flags->itl_target_ms,
                  "Milliseconds between tokens that the engine aims at")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  sub->add_option("--kv-tokens", flags->kv_tokens, "KV memory; default: enough for everybody")
      ->check(CLI::Range(256, 1 << 28));
  sub->add_option("--json", flags->json, "Also write everything measured to this file");
  sub->add_option("--html", flags->html, "Also write a page with pictures to this file");
  sub->add_option("--isa", flags->cpu.isa, "scalar, avx2, avx512 or amx; default the best here");
  sub->add_option("--threads", flags->cpu.num_threads, "Default: one per core the cgroup allows")
      ->check(CLI::Range(1, 1024));
  sub->callback([&chosen, flags] { chosen = [flags] { return Load(*flags); }; });
}

}  // namespace hearth
