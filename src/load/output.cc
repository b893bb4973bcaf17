// SPDX-License-Identifier: Apache-2.0
#include "load/output.h"

#include <fmt/format.h>

#include <algorithm>

namespace hearth {
namespace {

std::string PercentileLine(const char* name, const Percentiles& p, double scale) {
  return fmt::format("{:<22} {:>7} {:>9.4g} {:>9.4g} {:>9.4g} {:>9.4g} {:>9.4g}\n", name, p.count,
                     p.mean * scale, p.p50 * scale, p.p90 * scale, p.p99 * scale, p.most * scale);
}

std::string PercentileHead() {
  return fmt::format("{:<22} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "", "count", "mean", "p50",
                     "p90", "p99", "most");
}

Json PercentileJson(const Percentiles& p) {
  return JsonObject{{"count", p.count}, {"mean", p.mean}, {"p50", p.p50},
                    {"p90", p.p90},     {"p99", p.p99},   {"most", p.most}};
}

int64_t NumGenerated(const LoadReport& report) {
  int64_t count = 0;
  for (const LoadReply& reply : report.load.replies) {
    count += reply.num_generated;
  }
  return count;
}

std::string StepLines(const LoadReport& report) {
  if (report.steps.empty()) return {};
  const StepSummary summary = SummaryOf(report.steps);
  return fmt::format(
      "{} steps of {:.1f} sequences, {} tokens; planning, sampling, booking and telling took "
      "{:.2f} % of them\n",
      summary.steps, summary.mean_sequences, summary.tokens, 100 * summary.own_share());
}

std::string SteadyLines(const LoadReport& report) {
  if (!report.steady) return {};
  const SteadyRates& steady = *report.steady;
  std::string out =
      fmt::format("steady for {:.1f} s (all {} clients busy): {:.1f} tokens a second generated",
                  steady.window.seconds(), report.options.clients, steady.generated_per_s());
  if (!report.steps.empty()) out += fmt::format(" by {:.1f} streams a step", steady.mean_streams);
  out += fmt::format(", {:.0f} tokens of context", steady.mean_context);
  if (steady.prefill_share) {
    out += fmt::format("; {} tokens of prompts took {:.1f} % of the time", steady.prompt_computed,
                       100 * *steady.prefill_share);
  }
  if (!report.own_rate) return out + "\n";
  return out +
         fmt::format(
             ";\nthe backend alone, {} sequences after {} tokens: {:.1f}; that is {:.1f} % of "
             "it, {:.1f} % in the time that prompts left\n",
             report.options.clients, report.mean_context, *report.own_rate,
             100 * steady.generated_per_s() / *report.own_rate,
             100 * steady.decode_efficiency(*report.own_rate));
}

std::string ChatLines(const LoadReport& report) {
  const LoadOptions& options = report.options;
  std::string out =
      options.rate > 0
          ? fmt::format("{} chats, {} new ones per second", options.num_chats(), options.rate)
          : fmt::format("{} chats, {} at a time", options.num_chats(), options.clients);
  out += fmt::format("; {} turns each, {} preambles of about {} tokens\n", options.turns,
                     options.apps, options.preamble_tokens);
  int64_t problems = 0, preempted = 0;
  for (const LoadReply& reply : report.load.replies) {
    problems += reply.problem.empty() ? 0 : 1;
    preempted += reply.num_preempted;
  }
  out += fmt::format("{} replies in {:.2f} s, {} refused, {} ended early, {} preemptions\n\n",
                     report.load.replies.size(), report.load.seconds, report.load.num_refused,
                     problems, preempted);
  out += PercentileHead();
  out += PercentileLine("first token, s", PercentilesOf(FirstTokenSeconds(report.load.replies)), 1);
  out += PercentileLine("between tokens, ms", PercentilesOf(TokenGaps(report.load.replies)), 1e3);
  out += fmt::format("\n{} tokens generated, {:.1f} a second; {:.1f} % of prompt tokens cached\n",
                     NumGenerated(report), report.generated_per_s(), 100 * report.hit_share());
  if (report.own_rate) {
    out += fmt::format(
        "prompts included {:.1f} tokens a second were computed; the backend alone, {} sequences "
        "after {} tokens, computes {:.1f}: {:.0f} % of it, {:.0f} % in generated tokens\n",
        report.computed_per_s(), options.clients, report.mean_context, *report.own_rate,
        100 * report.computed_per_s() / *report.own_rate,
        100 * report.generated_per_s() / *report.own_rate);
  }
  return out + SteadyLines(report);
}

// Tokens of prompts in steps that had streams in them too.
std::vector<double> ChunksBeside(const LoadReport& report) {
  std::vector<double> out;
  for (const MeteredStep& step : report.steps) {
    if (step.prompts > 0 && step.streams() > 0 && step.start_s >= report.beside.from_s) {
      out.push_back(step.prompt_tokens);
    }
  }
  return out;
}

// Until the first token of each prompt, or until time ran out for it.
std::vector<double> WaitsOf(const LongPromptRecord& record) {
  std::vector<double> out;
  for (const LoadReply& reply : record.prompts) {
    out.push_back((reply.heard_s.empty() ? record.to_s : reply.heard_s.front()) - reply.sent_s);
  }
  return out;
}

std::string FirstTokenLines(const LoadReport& report) {
  const LongPromptRecord& record = report.beside;
  const size_t said = FirstTokenSeconds(record.prompts).size();
  const Percentiles wait = PercentilesOf(WaitsOf(record));
  std::string out =
      fmt::format("first token of a prompt after {:.2f} s in the median, {:.2f} s at most\n",
                  wait.p50, wait.most);
  if (said < record.prompts.size()) {
    out += fmt::format("{} of {} prompts said nothing until then", record.prompts.size() - said,
                       record.prompts.size());
    if (record.computed >= 0) out += fmt::format("; {} tokens were computed", record.computed);
    out += "\n";
  }
  const Percentiles chunks = PercentilesOf(ChunksBeside(report));
  if (chunks.count > 0) {
    out += fmt::format("prompt tokens in a step with streams: {:.1f} on average, {:.0f} at most\n",
                       chunks.mean, chunks.most);
  }
  return out;
}

std::string LongPromptLines(const LoadReport& report) {
  const LongPromptRecord& record = report.beside;
  const Percentiles before = PercentilesOf(TokenGaps(record.streams, 0, record.from_s));
  const Percentiles during = PercentilesOf(GapsBeside(record.streams, record.from_s, record.to_s));
  std::string out =
      fmt::format("{} streams decode; {} of {} tokens\n\n", report.long_prompt->streams,
                  report.long_prompt->prompts == 1
                      ? "then comes a prompt"
                      : fmt::format("then come {} prompts", report.long_prompt->prompts),
                  report.long_prompt->prompt_tokens);
  out += PercentileHead();
  out += PercentileLine("before, ms", before, 1e3);
  out += PercentileLine("beside prompts, ms", during, 1e3);
  out += fmt::format(
      "\np99 between tokens beside prompts: {:.1f} ms, {:.2f} of the bound of "
      "{:.0f} ms; the longest pause: {:.1f} ms\n",
      1e3 * during.p99, during.p99 / report.itl_target_s, 1e3 * report.itl_target_s,
      1e3 * during.most);
  return out + FirstTokenLines(report);
}

Json SteadyJson(const LoadReport& report) {
  const SteadyRates& steady = *report.steady;
  JsonObject out{{"from_s", steady.window.from_s},
                 {"to_s", steady.window.to_s},
                 {"generated", steady.generated},
                 {"generated_per_s", steady.generated_per_s()},
                 {"mean_context", steady.mean_context},
                 {"first_token_s", PercentileJson(steady.first_token_s)}};
  if (!report.steps.empty()) {
    out.emplace_back("prompt_computed", steady.prompt_computed);
    out.emplace_back("mean_streams", steady.mean_streams);
  }
  if (steady.prefill_share) out.emplace_back("prefill_share", *steady.prefill_share);
  if (report.own_rate) {
    out.emplace_back("of_backend", steady.generated_per_s() / *report.own_rate);
    out.emplace_back("decode_efficiency", steady.decode_efficiency(*report.own_rate));
  }
  return out;
}

Json ReplyJson(const LoadReply& reply) {
  JsonArray heard;
  for (const double s : reply.heard_s) heard.emplace_back(s);
  return JsonObject{{"sent_s", reply.sent_s},           {"ended_s", reply.ended_s},
                    {"prompt", reply.num_prompt},       {"cached", reply.num_cached},
                    {"preempted", reply.num_preempted}, {"problem", reply.problem},
                    {"heard_s", std::move(heard)}};
}

Json LongPromptJson(const LoadReport& report) {
  const LongPromptRecord& beside = report.beside;
  const auto gaps = [](std::vector<double> values) {
    return PercentileJson(PercentilesOf(std::move(values)));
  };
  JsonArray replies;
  for (const LoadReply& reply : beside.prompts) replies.push_back(ReplyJson(reply));
  JsonArray steps;
  for (const MeteredStep& step : report.steps) {
    steps.push_back(JsonArray{step.start_s, step.run_s, step.streams(), step.prompt_tokens});
  }
  return JsonObject{
      {"tokens", report.long_prompt->prompt_tokens},
      {"from_s", beside.from_s},
      {"to_s", beside.to_s},
      {"reply", ReplyJson(beside.prompts.front())},
      {"replies", std::move(replies)},
      {"computed", beside.computed},
      {"first_token_s", gaps(WaitsOf(beside))},
      {"chunk_tokens", gaps(ChunksBeside(report))},
      {"between_tokens_before_s", gaps(TokenGaps(beside.streams, 0, beside.from_s))},
      {"between_tokens_s", gaps(GapsBeside(beside.streams, beside.from_s, beside.to_s))},
      {"steps", std::move(steps)}};  // start, seconds, streams, tokens of prompts
}

}  // namespace

double LoadReport::generated_per_s() const {
  return load.seconds > 0 ? static_cast<double>(NumGenerated(*this)) / load.seconds : 0;
}

double LoadReport::computed_per_s() const {
  return load.seconds > 0 ? static_cast<double>(SummaryOf(steps).tokens) / load.seconds : 0;
}

double LoadReport::hit_share() const {
  double cached = 0, prompt = 0;
  for (const LoadReply& reply : load.replies) {
    cached += reply.num_cached;
    prompt += reply.num_prompt;
  }
  return prompt > 0 ? cached / prompt : 0;
}

std::string LoadTable(const LoadReport& report) {
  std::string out = report.url.empty()
                        ? fmt::format("{}: {}, {} threads; others used {:.0f} %\n", report.model,
                                      report.isa, report.num_threads, 100 * report.others)
                        : fmt::format("{} {}\n", report.url, report.model);
  out += report.long_prompt ? LongPromptLines(report) : ChatLines(report);
  return out + StepLines(report);
}

Json LoadJson(const LoadReport& report) {
  const StepSummary summary = SummaryOf(report.steps);
  JsonObject out{{"schema", "hearth.bench.load"},
                 {"version", 1},
                 {"date", report.date},
                 {"model", report.model},
                 {"machine", JsonObject{{"processor", report.processor},
                                        {"isa", report.isa},
                                        {"threads", report.num_threads}}},
                 {"others", report.others},
                 {"itl_target_s", report.itl_target_s}};
  if (!report.url.empty()) out.emplace_back("url", report.url);
  if (!report.steps.empty()) {
    out.emplace_back("steps", JsonObject{{"count", summary.steps},
                                         {"tokens", summary.tokens},
                                         {"mean_sequences", summary.mean_sequences},
                                         {"own_share", summary.own_share()}});
  }
  JsonArray replies;
  const bool is_long = report.long_prompt.has_value();
  for (const LoadReply& reply : is_long ? report.beside.streams : report.load.replies) {
    replies.push_back(ReplyJson(reply));
  }
  if (is_long) {
    out.emplace_back("long_prompt", LongPromptJson(report));
  } else {
    out.emplace_back("seconds", report.load.seconds);
    out.emplace_back("refused", report.load.num_refused);
    out.emplace_back("first_token_s",
                     PercentileJson(PercentilesOf(FirstTokenSeconds(report.load.replies))));
    out.emplace_back("between_tokens_s",
                     PercentileJson(PercentilesOf(TokenGaps(report.load.replies))));
    out.emplace_back("generated_per_s", report.generated_per_s());
    out.emplace_back("computed_per_s", report.computed_per_s());
    out.emplace_back("hit_share", report.hit_share());
    if (report.own_rate) out.emplace_back("backend_per_s", *report.own_rate);
    if (report.steady) out.emplace_back("steady", SteadyJson(report));
  }
  out.emplace_back("replies", std::move(replies));
  return out;
}

}  // namespace hearth
