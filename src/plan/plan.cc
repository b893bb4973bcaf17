// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

constexpr int kUsers[] = {1, 8, 32};
constexpr int kDepths[] = {2048, 8192, 32768, 131072};
constexpr int kPrompts[] = {512, 8192, 32768};

PhaseWork PromptWork(const PlanInput& input, int tokens) {
  return input.work.ByPhase({BenchKind::kPrefill, 1, 0, tokens}, input.kv, input.chunk);
}

const CaseTime& Nearest(const ModelTimes& times, int users) {
  const CaseTime* found = &times.decode.front();
  for (const CaseTime& each : times.decode) {
    if (each.what.sequences <= users) found = &each;
  }
  return *found;
}

PlannedCase DecodeCase(const ModelTimes& times, int users, int depth) {
  PlannedCase out;
  out.users = users;
  out.depth = depth;
  out.name = users == 1 ? "decode, 1 user" : Printf("decode, %d users", users);
  if (depth > 0) out.name += Printf(" at %d tokens", depth);
  out.seconds = times.StepSeconds(users, depth);
  out.tokens_per_second = times.DecodeRate(users, depth);
  const double attention = times.SecondsPerPosition() * depth * users;
  out.bound = attention > out.seconds / 2 ? "arithmetic"
                                          : BoundOf(Nearest(times, users), times.stream_here);
  return out;
}

// The speed of decode, of 32 users and of a prompt with rates so many times as high, over those
// now.
PlannedHelp Help(const PlanInput& input, std::string what, double memory, double arithmetic) {
  const ModelTimes& now = input.times;
  const MachineRates rates{now.stream_here, now.int8_here, 1};
  const MachineRates more{now.stream_here * memory, now.int8_here * arithmetic, 1};
  const ModelTimes then = OnMachine(now, rates, more);
  PlannedHelp help;
  help.what = std::move(what);
  help.decode = then.DecodeRate(1, 0) / now.DecodeRate(1, 0);
  help.users = then.DecodeRate(32, 0) / now.DecodeRate(32, 0);
  help.prefill = now.prefill.total() / then.prefill.total();
  return help;
}

}  // namespace

int FitFigures::context() const {
  return static_cast<int>(std::min<int64_t>(max_context, kv_tokens));
}

void AddCases(const PlanInput& input, PlanRecord& record) {
  for (const int users : kUsers) record.cases.push_back(DecodeCase(input.times, users, 0));
  for (const int depth : kDepths) {
    if (depth < record.fit.context()) record.cases.push_back(DecodeCase(input.times, 1, depth));
  }
  for (const int tokens : kPrompts) {
    if (tokens > record.fit.context()) continue;
    PlannedCase out;
    out.name = Printf("prompt of %d tokens", tokens);
    out.prompt = tokens;
    out.seconds = input.times.PrefillSeconds(PromptWork(input, tokens), tokens);
    out.tokens_per_second = tokens / out.seconds;
    out.bound = BoundOf(input.times.prefill, input.times.stream_here);
    record.cases.push_back(std::move(out));
  }
}

void AddSettings(const PlanInput& input, PlanRecord& record) {
  record.settings.push_back({"--threads", std::to_string(record.rates.threads),
                             "one per core; a core's second thread shares its arithmetic"});
  const FitFigures& fit = record.fit;
  if (fit.context() < fit.max_context) {
    record.settings.push_back({"--context", std::to_string(fit.context()),
                               Printf("the model has %d, the KV memory holds %lld tokens in all",
                                      fit.max_context, static_cast<long long>(fit.kv_tokens))});
  }
  record.settings.push_back({"--kv-memory",
                             Printf("%.1fGiB", static_cast<double>(fit.kv_bytes) / (1 << 30)),
                             "half of what the weights leave, the default"});
  // More sequences at a time than memory holds at a usual length only preempt each other.
  constexpr int kUsualLength = 2048;
  const auto held = static_cast<int>(std::max<int64_t>(1, fit.kv_tokens / kUsualLength));
  const int sequences = std::min(input.max_sequences, held);
  record.settings.push_back(
      {"--max-sequences", std::to_string(sequences),
       Printf("the KV memory holds %d replies of %d tokens", held, kUsualLength)});
  const double step = input.times.StepSeconds(std::min(32, sequences), kUsualLength);
  const double target = std::max(input.itl_target_s, 1.5 * step);
  record.settings.push_back(
      {"--itl-target", Printf("%.0f", 1000 * std::ceil(target * 20) / 20),
       target > input.itl_target_s
           ? Printf(
                 "a step of %d users takes %.0f ms; below that, prompts are read 8 tokens a step",
                 std::min(32, sequences), 1000 * step)
           : "the default; a step with many users stays below it"});
}

void AddHelps(const PlanInput& input, PlanRecord& record) {
  record.helps.push_back(Help(input, "memory twice as fast (channels, or faster modules)", 2, 1));
  record.helps.push_back(Help(input, "twice the cores, same memory", 1, 2));
  record.helps.push_back(Help(input, "twice of both", 2, 2));
  std::stable_sort(record.helps.begin(), record.helps.end(),
                   [](const PlannedHelp& a, const PlannedHelp& b) {
                     return a.decode + a.users + a.prefill > b.decode + b.users + b.prefill;
                   });
  const double bits = 8.0 * static_cast<double>(record.costs.weight_bytes) /
                      static_cast<double>(std::max<int64_t>(1, record.costs.parameters));
  if (bits > 7) {
    PlannedHelp smaller;
    smaller.what = "the same model in a format of 4.8 bits (Q4_K_M)";
    smaller.decode = bits / 4.8;
    smaller.note = Printf("it has %.1f bits per weight now; costs some quality", bits);
    record.helps.push_back(std::move(smaller));
  }
}

}  // namespace hearth
