// SPDX-License-Identifier: Apache-2.0
// A fleet's plan as text and as JSON.
#include <algorithm>

#include "plan/fleet.h"

namespace hearth {
namespace {

Json AsJson(const PlanPercentiles& p) {
  return JsonObject{{"p50", p.p50}, {"p95", p.p95}, {"p99", p.p99}};
}

JsonArray Moments(const FleetOutcome& o) {
  JsonArray out;
  for (const FleetMoment& m : o.moments) {
    out.push_back(JsonObject{{"from_seconds", m.from_s},
                             {"first_token_p95_seconds", m.first_token_p95_s},
                             {"hit_share", m.hit_share},
                             {"requests", m.requests},
                             {"least_up", m.least_up}});
  }
  return out;
}

Json AsJson(const FleetOutcome& o, bool with_moments) {
  JsonObject out{{"policy", NameOf(o.policy)},
                 {"replicas", o.replicas},
                 {"is_modelled", o.is_modelled},
                 {"requests", o.requests},
                 {"counted", o.counted},
                 {"refused", o.refused},
                 {"broken_streams", o.broken},
                 {"resent", o.resent},
                 {"hit_share", o.hit_share},
                 {"fetched_share", o.fetched_share},
                 {"first_token_seconds", AsJson(o.first_token_s)},
                 {"gap_seconds", AsJson(o.gap_s)},
                 {"reply_seconds", AsJson(o.reply_s)},
                 {"tokens_per_second", o.tokens_per_second},
                 {"requests_per_second", o.requests_per_second},
                 {"mean_batch", o.mean_batch},
                 {"busiest", o.busiest},
                 {"simulated_seconds", o.simulated_s},
                 {"took_seconds", o.took_s}};
  if (with_moments) out.push_back({"moments", Moments(o)});
  return out;
}

std::string Seconds(double s) {
  return s < 1 ? Printf("%.0f ms", 1000 * s) : Printf(s < 100 ? "%.1f s" : "%.0f s", s);
}

std::string Row(const FleetOutcome& o) {
  return Printf("%-13s %8d  %6.1f %%  %9s %9s %9s  %9s  %9.0f  %7lld\n", NameOf(o.policy),
                o.replicas, 100 * o.hit_share, Seconds(o.first_token_s.p50).c_str(),
                Seconds(o.first_token_s.p95).c_str(), Seconds(o.first_token_s.p99).c_str(),
                Seconds(o.gap_s.p95).c_str(), o.tokens_per_second,
                static_cast<long long>(o.refused));
}

constexpr const char* kHead =
    "POLICY        REPLICAS    CACHED   FIRST p50       p95       p99    GAP p95   TOKENS/S  "
    "REFUSED\n";

std::string Cost(const FleetRecord& r) {
  if (r.price <= 0 || r.policies.empty()) return "";
  const FleetOutcome& o = r.policies.back();
  if (o.tokens_per_second <= 0) return "";
  const double hour = r.price * o.replicas;
  return Printf("cost: %.2f an hour, %.2f for a million reply tokens\n", hour,
                hour / (3600 * o.tokens_per_second) * 1e6);
}

std::string Incident(const FleetRecord& r, const FleetOutcome& o) {
  double worst_s = 0, least_hit = 1;
  int least_up = o.replicas;
  const double at_s = r.incident.deploy_at_s >= 0 ? r.incident.deploy_at_s : r.incident.fail_at_s;
  double before_s = 0, before_hit = 0;
  int64_t before = 0;
  const int64_t mean = o.requests / static_cast<int64_t>(std::max<size_t>(1, o.moments.size()));
  for (const FleetMoment& m : o.moments) {
    least_up = std::min(least_up, m.least_up);
    if (m.requests <= mean / 4) continue;  // the load begins or ends: too few to say anything
    if (m.from_s < at_s) {
      before_s = std::max(before_s, m.first_token_p95_s);
      before_hit += m.hit_share * static_cast<double>(m.requests);
      before += m.requests;
      continue;
    }
    worst_s = std::max(worst_s, m.first_token_p95_s);
    least_hit = std::min(least_hit, m.hit_share);
  }
  if (before > 0) before_hit /= static_cast<double>(before);
  return Printf(
      "%-13s at least %d of %d replicas up; %lld streams broke, %lld requests were sent elsewhere "
      "unnoticed; first token p95 at most %s before it and %s from then on; cached %.1f %% before, "
      "at least %.1f %% from then on\n",
      NameOf(o.policy), least_up, o.replicas, static_cast<long long>(o.broken),
      static_cast<long long>(o.resent), Seconds(before_s).c_str(), Seconds(worst_s).c_str(),
      100 * before_hit, 100 * least_hit);
}

}  // namespace

std::string FleetText(const FleetRecord& r) {
  std::string out = "replica: " + r.replica + "\nload:    " + r.load + "\n\n";
  if (!r.search.tried.empty()) {
    if (r.search.replicas > 0) {
      out += Printf("%d replicas are the fewest", r.search.replicas);
    } else {
      out += Printf("Not even %d replicas are enough", r.search.tried.back().replicas);
    }
    out += Printf(" for 95 of 100 first tokens within %g s and 95 of 100 gaps within %g s:\n",
                  r.target.first_token_s, r.target.gap_s);
    out += kHead;
    for (const FleetOutcome& o : r.search.tried) out += Row(o);
    out += "\n";
  }
  if (!r.policies.empty()) out += kHead;
  for (const FleetOutcome& o : r.policies) out += Row(o);
  out += Cost(r);
  if (!r.incidents.empty()) out += "\nWhat happens:\n";
  for (const FleetOutcome& o : r.incidents) out += Incident(r, o);
  out += "\nAssumed:\n";
  for (const std::string& each : r.assumptions) out += "- " + each + "\n";
  double took_s = 0;
  int64_t requests = 0;
  for (const auto* list : {&r.search.tried, &r.policies, &r.incidents}) {
    for (const FleetOutcome& o : *list) {
      took_s += o.took_s;
      requests += o.requests;
    }
  }
  out += Printf("\nsimulated %lld requests in %.1f s, with at most %.0f MB of memory\n",
                static_cast<long long>(requests), took_s, static_cast<double>(r.peak_bytes) / 1e6);
  return out;
}

Json FleetJson(const FleetRecord& r) {
  JsonArray tried, policies, incidents, assumptions;
  for (const FleetOutcome& o : r.search.tried) tried.push_back(AsJson(o, false));
  for (const FleetOutcome& o : r.policies) policies.push_back(AsJson(o, false));
  for (const FleetOutcome& o : r.incidents) incidents.push_back(AsJson(o, true));
  for (const std::string& each : r.assumptions) assumptions.push_back(each);
  return JsonObject{{"schema", "hearth.plan.fleet"},
                    {"version", 1},
                    {"hearth", r.hearth},
                    {"replica", r.replica},
                    {"load", r.load},
                    {"target", JsonObject{{"first_token_seconds", r.target.first_token_s},
                                          {"gap_seconds", r.target.gap_s}}},
                    {"replicas", r.search.replicas},
                    {"tried", std::move(tried)},
                    {"policies", std::move(policies)},
                    {"incidents", std::move(incidents)},
                    {"price", r.price},
                    {"peak_bytes", r.peak_bytes},
                    {"assumptions", std::move(assumptions)}};
}

}  // namespace hearth
