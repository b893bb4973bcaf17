// SPDX-License-Identifier: Apache-2.0
#include "trace/turn_spans.h"

#include <algorithm>

namespace hearth {
namespace {

// GenAI semantic conventions: what the request asked to be done.
const char* OperationOf(const std::string& dialect) {
  if (dialect.find("embed") != std::string::npos) return "embeddings";
  const bool is_text =
      dialect.find("completions") != std::string::npos && dialect.find("chat") == std::string::npos;
  return is_text || dialect.find("generate") != std::string::npos ? "text_completion" : "chat";
}

// How much of a reply's text there is, in the words of the conventions.
const char* ReasonOf(Finish finish) {
  if (finish == Finish::kStop) return "stop";
  if (finish == Finish::kLength) return "length";
  return NameOf(finish);
}

const RequestRecord* LongestOf(const TurnOutcome& outcome) {
  const RequestRecord* longest = nullptr;
  for (const RequestRecord& record : outcome.records) {
    if (longest == nullptr || record.ended_us > longest->ended_us) longest = &record;
  }
  return longest;
}

TraceSpan RootOf(const TurnOutcome& outcome, const RequestRecord* record) {
  TraceSpan root;
  const char* operation = OperationOf(outcome.dialect);
  root.name = outcome.model.empty() ? operation : operation + (" " + outcome.model);
  root.is_server = true;
  root.is_error = outcome.status >= 500 || !outcome.error_code.empty();
  root.message = outcome.error_code;
  auto& out = root.attributes;
  out.emplace_back("gen_ai.operation.name", operation);
  out.emplace_back("gen_ai.provider.name", "hearth");
  if (!outcome.model.empty()) {
    out.emplace_back("gen_ai.request.model", outcome.model);
    out.emplace_back("gen_ai.response.model", outcome.model);
  }
  out.emplace_back("gen_ai.response.id", outcome.request_id);
  if (!outcome.records.empty()) {
    int64_t input = 0, generated = 0, cached = 0;
    JsonArray reasons;
    const auto per_prompt = static_cast<size_t>(std::max(1, outcome.choices_per_prompt));
    for (size_t i = 0; i < outcome.records.size(); ++i) {
      const RequestRecord& each = outcome.records[i];
      if (i % per_prompt == 0) input += each.num_prompt;
      if (i % per_prompt == 0) cached += each.num_cached;
      generated += each.num_generated;
      reasons.emplace_back(ReasonOf(each.finish));
    }
    out.emplace_back("gen_ai.usage.input_tokens", input);
    out.emplace_back("gen_ai.usage.output_tokens", generated);
    out.emplace_back("gen_ai.usage.cache_read.input_tokens", cached);
    out.emplace_back("gen_ai.response.finish_reasons", std::move(reasons));
  }
  out.emplace_back("http.response.status_code", outcome.status);
  if (!outcome.error_code.empty()) out.emplace_back("error.type", outcome.error_code);
  out.emplace_back("hearth.dialect", outcome.dialect);
  out.emplace_back("hearth.stream", outcome.streams);
  if (outcome.records.size() > 1) {
    out.emplace_back("gen_ai.request.choice.count", static_cast<int64_t>(outcome.records.size()));
  }
  if (record != nullptr && record->num_preempted > 0) {
    out.emplace_back("hearth.preemptions", record->num_preempted);
  }
  return root;
}

struct Part {
  const char* name;
  int64_t until_us;  // by the engine's clock; it begins where the one before ends
  std::vector<std::pair<std::string, Json>> attributes = {};
};

// In their order; what did not happen has no length and is left out by the caller.
std::vector<Part> PartsOf(const RequestRecord& r) {
  // What did not happen ended where the request did.
  const int64_t started = r.started_us > 0 ? r.started_us : r.ended_us;
  const int64_t first = r.first_token_us > 0 ? r.first_token_us : r.ended_us;
  const int64_t loading = std::clamp<int64_t>(r.loading_us, 0, started - r.arrived_us);
  std::vector<Part> parts;
  parts.push_back({"read", r.arrived_us});
  parts.push_back({"queue", started - loading, {{"hearth.waited_us", r.waited_us}}});
  parts.push_back({"tiers", started, {{"hearth.loaded_tokens", r.num_loaded}}});
  parts.push_back(
      {"prefill",
       first,
       {{"hearth.prompt_tokens", r.num_prompt}, {"hearth.cached_tokens", r.num_cached}}});
  parts.push_back({"decode",
                   r.ended_us,
                   {{"hearth.generated_tokens", r.num_generated},
                    {"hearth.accepted_drafts", r.num_accepted},
                    {"hearth.paused_us", r.paused_us}}});
  return parts;
}

}  // namespace

std::vector<TraceSpan> SpansOf(const TurnOutcome& outcome, const TurnMoment& end,
                               const TraceParentField& parent,
                               const std::function<SpanId()>& next_id) {
  const RequestRecord* record = LongestOf(outcome);
  std::vector<TraceSpan> spans{RootOf(outcome, record)};
  TraceSpan& root = spans.front();
  root.trace = parent.trace;
  root.id = next_id();
  root.parent = parent.span;
  root.end_ns = end.unix_ns;
  root.start_ns = end.unix_ns - static_cast<int64_t>(outcome.seconds * 1e9);
  if (record == nullptr) return spans;
  const int64_t root_start = root.start_ns;
  const SpanId root_id = root.id;
  int64_t at_ns = root_start;
  const auto add = [&](const char* name, int64_t until_ns,
                       std::vector<std::pair<std::string, Json>> attributes) {
    // Clocks that disagree by a moment make no span end before it begins.
    until_ns = std::clamp(until_ns, at_ns, end.unix_ns);
    if (until_ns > at_ns) {
      TraceSpan span;
      span.trace = parent.trace;
      span.id = next_id();
      span.parent = root_id;
      span.name = name;
      span.start_ns = at_ns;
      span.end_ns = until_ns;
      span.attributes = std::move(attributes);
      spans.push_back(std::move(span));
    }
    at_ns = until_ns;
  };
  for (Part& part : PartsOf(*record)) {
    add(part.name, end.unix_ns - (end.engine_us - part.until_us) * 1000,
        std::move(part.attributes));
  }
  add("write", end.unix_ns, {});
  return spans;
}

}  // namespace hearth
