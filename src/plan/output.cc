// SPDX-License-Identifier: Apache-2.0
// A plan as text and as JSON.
#include <algorithm>

#include "plan/plan.h"

namespace hearth {
namespace {

std::string Gib(double bytes) { return Printf("%.2f GiB", bytes / (1 << 30)); }

// Three figures: 0.123, 12.3, 1,234 would be 1234.
std::string Rate(double value) { return Printf(value >= 100 ? "%.0f" : "%.3g", value); }

std::string Duration(double seconds) {
  if (seconds < 1) return Printf("%.0f ms", std::max(1.0, 1000 * seconds));
  return Printf(seconds < 100 ? "%.1f s" : "%.0f s", seconds);
}

void AddHead(const PlanRecord& r, std::string& out) {
  out += Printf("model     %s (%s), %.2f GB of weights, %.2f GB read per token\n", r.model.c_str(),
                r.family.c_str(), static_cast<double>(r.costs.weight_bytes) / 1e9,
                static_cast<double>(r.costs.decode_bytes) / 1e9);
  if (r.n_experts > 0) {
    out += Printf(
        "          %d of %d experts per token: 8 users read %.0f %% of them, 32 %.0f %%\n",
        r.n_active_experts, r.n_experts, 100 * ShareOfExperts({r.n_experts, r.n_active_experts}, 8),
        100 * ShareOfExperts({r.n_experts, r.n_active_experts}, 32));
  }
  out += Printf("machine   %s: %d threads, %s; reads %.1f GB/s, %.2f TOP/s of int8%s\n",
                r.machine.c_str(), r.rates.threads, r.isa.c_str(), r.rates.stream / 1e9,
                r.rates.int8 / 1e12, r.is_here ? " (measured)" : " (from its description)");
  const FitFigures& f = r.fit;
  if (!f.problem.empty()) {
    out += "fits      NO: " + f.problem + "\n";
    return;
  }
  out += Printf("fits      yes: %s weights + %s a step + %s server + %s for KV, of %s usable\n",
                Gib(static_cast<double>(f.weight_bytes)).c_str(),
                Gib(static_cast<double>(f.other_bytes)).c_str(),
                Gib(static_cast<double>(f.server_bytes)).c_str(),
                Gib(static_cast<double>(f.kv_bytes)).c_str(),
                Gib(static_cast<double>(f.usable_bytes)).c_str());
  out += Printf("context   %d tokens for one user (the model has %d); %lld tokens over all users\n",
                f.context(), f.max_context, static_cast<long long>(f.kv_tokens));
}

void AddTables(const PlanRecord& r, std::string& out) {
  out += "\nSPEED                            tokens/s   a step or prompt   bound by\n";
  for (const PlannedCase& c : r.cases) {
    out += Printf("%-32s %8s   %16s   %s\n", c.name.c_str(), Rate(c.tokens_per_second).c_str(),
                  Duration(c.seconds).c_str(), c.bound.c_str());
  }
  out += "\nSETTINGS of `hearth serve`\n";
  for (const PlannedSetting& s : r.settings) {
    out += Printf("%-16s %-10s %s\n", s.flag.c_str(), s.value.c_str(), s.why.c_str());
  }
  out += "\nWHAT WOULD HELP                                        decode  32 users  prompts\n";
  for (const PlannedHelp& h : r.helps) {
    out += Printf("%-53s  %5.2fx    %5.2fx   %5.2fx%s%s\n", h.what.c_str(), h.decode, h.users,
                  h.prefill, h.note.empty() ? "" : "  ", h.note.c_str());
  }
}

std::string Times(const PlanPercentiles& p) {
  return Printf("%10s %10s %10s", Duration(p.p50).c_str(), Duration(p.p95).c_str(),
                Duration(p.p99).c_str());
}

void AddOutcome(const char* title, const LoadOutcome& o, std::string& out) {
  out += Printf("%-28s     median        p95        p99\n", title);
  out += "  time to first token       " + Times(o.first_token_s) + "\n";
  out += "  between tokens            " + Times(o.gap_s) + "\n";
  out += "  whole reply               " + Times(o.reply_s) + "\n";
  out += Printf("  %s tokens/s, %.2f requests/s, %.1f replies at a time%s%s\n",
                Rate(o.tokens_per_second).c_str(), o.requests_per_second, o.mean_batch,
                o.refused > 0 ? Printf(", %d refusals", o.refused).c_str() : "",
                o.preemptions > 0
                    ? Printf(", %lld preemptions", static_cast<long long>(o.preemptions)).c_str()
                    : "");
}

void AddLoad(const PlanRecord& r, std::string& out) {
  if (!r.load || !r.replicas) return;
  out += Printf(
      "\nLOAD: %d users, prompts of %d tokens (%d of them shared), replies of %d, %.0f s to "
      "think\n",
      r.load->users, r.load->prompt, r.load->shared, r.load->reply, r.load->think_s);
  if (r.one_server) AddOutcome("one server", *r.one_server, out);
  if (r.replicas->replicas == 1) {
    out += "  one server meets the target\n";
  } else if (r.replicas->replicas == 0) {
    AddOutcome("a server for one user alone", r.replicas->outcome, out);
    out += Printf("  even that misses the target of %s to the first token and %s between tokens\n",
                  Duration(r.target->first_token_s).c_str(), Duration(r.target->gap_s).c_str());
  } else {
    AddOutcome(
        Printf("%d servers of %d users", r.replicas->replicas, r.replicas->users_each).c_str(),
        r.replicas->outcome, out);
    out += Printf(
        "  %d servers needed for %s to the first token and %s between tokens (p95); %s of "
        "memory each\n",
        r.replicas->replicas, Duration(r.target->first_token_s).c_str(),
        Duration(r.target->gap_s).c_str(), Gib(static_cast<double>(r.fit.total_bytes())).c_str());
  }
}

Json JsonOf(const PlanPercentiles& p) {
  return JsonObject{{"p50", p.p50}, {"p95", p.p95}, {"p99", p.p99}};
}

Json JsonOf(const LoadOutcome& o) {
  return JsonObject{{"first_token_seconds", JsonOf(o.first_token_s)},
                    {"gap_seconds", JsonOf(o.gap_s)},
                    {"reply_seconds", JsonOf(o.reply_s)},
                    {"tokens_per_second", o.tokens_per_second},
                    {"requests_per_second", o.requests_per_second},
                    {"mean_batch", o.mean_batch},
                    {"most_running", o.most_running},
                    {"refused", o.refused},
                    {"preemptions", o.preemptions}};
}

Json JsonOf(const MachineRates& rates) {
  return JsonObject{{"threads", rates.threads},
                    {"stream_bytes_per_second", rates.stream},
                    {"int8_operations_per_second", rates.int8}};
}

Json JsonOf(const Headline& h) {
  return JsonObject{
      {"tokens_per_second", h.wanted},        {"bytes_per_token", h.bytes},
      {"share_of_stream_read", h.read_share}, {"serial_seconds", h.serial_s},
      {"loop_end_seconds", h.loops_s},        {"least_stream_bytes_per_second", h.least_stream},
      {"machine_tokens_per_second", h.rate},  {"machine_serial_share", h.serial_share}};
}

Json FitJson(const FitFigures& f) {
  return JsonObject{{"fits", f.problem.empty()},      {"problem", f.problem},
                    {"usable_bytes", f.usable_bytes}, {"weight_bytes", f.weight_bytes},
                    {"kv_bytes", f.kv_bytes},         {"other_bytes", f.other_bytes},
                    {"server_bytes", f.server_bytes}, {"kv_tokens", f.kv_tokens},
                    {"context", f.context()}};
}

Json JsonOf(const std::vector<PlannedPoint>& points, const char* at) {
  JsonArray out;
  for (const PlannedPoint& p : points) {
    out.push_back(
        JsonObject{{at, p.at}, {"tokens_per_second", p.tokens_per_second}, {"seconds", p.seconds}});
  }
  return out;
}

Json LoadPlanJson(const PlanRecord& r) {
  if (!r.load || !r.replicas) return Json();
  JsonObject out{{"users", r.load->users},
                 {"prompt", r.load->prompt},
                 {"shared", r.load->shared},
                 {"reply", r.load->reply},
                 {"think_seconds", r.load->think_s},
                 {"target_first_token_seconds", r.target->first_token_s},
                 {"target_gap_seconds", r.target->gap_s},
                 {"replicas", r.replicas->replicas},
                 {"users_per_replica", r.replicas->users_each},
                 {"replica", JsonOf(r.replicas->outcome)}};
  if (r.one_server) out.emplace_back("one_server", JsonOf(*r.one_server));
  return out;
}

}  // namespace

std::string PlanText(const PlanRecord& r) {
  std::string out;
  AddHead(r, out);
  if (!r.cases.empty()) AddTables(r, out);
  if (r.headline) out += "\nBANDWIDTH\n" + HeadlineText(*r.headline) + "\n";
  AddLoad(r, out);
  out += "\nASSUMED\n";
  for (const std::string& each : r.assumptions) out += "- " + each + "\n";
  return out;
}

Json PlanJson(const PlanRecord& r) {
  JsonArray cases, settings, helps, assumptions;
  for (const PlannedCase& c : r.cases) {
    cases.push_back(JsonObject{{"name", c.name},
                               {"users", c.users},
                               {"depth", c.depth},
                               {"prompt", c.prompt},
                               {"tokens_per_second", c.tokens_per_second},
                               {"seconds", c.seconds},
                               {"bound", c.bound}});
  }
  for (const PlannedSetting& s : r.settings) {
    settings.push_back(JsonObject{{"flag", s.flag}, {"value", s.value}, {"why", s.why}});
  }
  for (const PlannedHelp& h : r.helps) {
    helps.push_back(JsonObject{{"what", h.what},
                               {"decode", h.decode},
                               {"users_32", h.users},
                               {"prefill", h.prefill},
                               {"note", h.note}});
  }
  for (const std::string& each : r.assumptions) assumptions.emplace_back(each);
  return JsonObject{{"schema", "hearth.plan"},
                    {"version", 1},
                    {"hearth", r.hearth},
                    {"model", JsonObject{{"name", r.model},
                                         {"family", r.family},
                                         {"layers", r.layers},
                                         {"sampled_layers", r.sampled_layers},
                                         {"weight_bytes", r.costs.weight_bytes},
                                         {"decode_bytes", r.costs.decode_bytes},
                                         {"kv_bytes_per_token", r.costs.kv_bytes_per_token},
                                         {"experts", r.n_experts},
                                         {"active_experts", r.n_active_experts}}},
                    {"machine", JsonObject{{"name", r.machine},
                                           {"is_here", r.is_here},
                                           {"isa", r.isa},
                                           {"rates", JsonOf(r.rates)},
                                           {"measured_here", JsonOf(r.here)},
                                           {"sample_seconds", r.sample_seconds},
                                           {"others", r.others}}},
                    {"fit", FitJson(r.fit)},
                    {"cases", std::move(cases)},
                    {"curves", JsonObject{{"users", JsonOf(r.by_users, "users")},
                                          {"depth", JsonOf(r.by_depth, "depth")},
                                          {"prompt", JsonOf(r.by_prompt, "prompt")}}},
                    {"settings", std::move(settings)},
                    {"helps", std::move(helps)},
                    {"headline", r.headline ? JsonOf(*r.headline) : Json()},
                    {"load", LoadPlanJson(r)},
                    {"assumptions", std::move(assumptions)}};
}

}  // namespace hearth
