// SPDX-License-Identifier: Apache-2.0
// A fleet's plan as a page with pictures, in one file that loads nothing.
#include "plan/fleet.h"
#include "report/html.h"
#include "report/plot.h"

namespace hearth {
namespace {

std::string Where(const FleetRecord& r) {
  return r.replica + (r.date.empty() ? "" : ", " + r.date) + ", simulated";
}

std::string Short(double value) { return Printf(value >= 100 ? "%.0f" : "%.3g", value); }

std::string Knee(const FleetRecord& r) {
  Plot plot{.title = "Time to the first token by replicas",
            .subtitle = Printf("Session hashing; %s", r.load.c_str()),
            .better = Better::kLower,
            .where = Where(r),
            .x = {.label = "replicas", .scale = Scale::kLog},
            .y = {.label = "seconds", .scale = Scale::kLog}};
  Series middle{.name = "median", .marks = true, .colour = 0};
  Series late{.name = "p95", .marks = true, .colour = 1};
  Series target{.name = "target for 95 of 100", .dashed = true, .colour = 2, .named_at_end = true};
  for (const FleetOutcome& o : r.search.tried) {
    if (o.first_token_s.p50 <= 0) continue;
    middle.points.push_back({double(o.replicas), o.first_token_s.p50});
    late.points.push_back({double(o.replicas), o.first_token_s.p95});
    target.points.push_back({double(o.replicas), r.target.first_token_s});
  }
  plot.series = {std::move(middle), std::move(late), std::move(target)};
  return DrawPlot(plot);
}

std::string Hits(const FleetRecord& r) {
  BarPlot plot{
      .title = "Prompt tokens found cached",
      .subtitle = Printf("%d replicas; by how requests are routed", r.policies.front().replicas),
      .better = Better::kHigher,
      .where = Where(r),
      .unit = "percent"};
  int colour = 0;
  for (const FleetOutcome& o : r.policies) {
    plot.bars.push_back({.label = NameOf(o.policy),
                         .value = 100 * o.hit_share,
                         .note = Printf("%.1f %%", 100 * o.hit_share),
                         .colour = colour++});
  }
  return DrawBars(plot);
}

std::string Waits(const FleetRecord& r) {
  BarPlot plot{.title = "Time to the first token",
               .subtitle = "By how requests are routed",
               .better = Better::kLower,
               .where = Where(r),
               .unit = "seconds",
               .limit = r.target.first_token_s,
               .limit_name = "target for 95 of 100"};
  for (const FleetOutcome& o : r.policies) {
    const std::string name = NameOf(o.policy);
    plot.bars.push_back({.label = name + ", median",
                         .value = o.first_token_s.p50,
                         .note = Short(o.first_token_s.p50) + " s",
                         .colour = 0});
    plot.bars.push_back({.label = name + ", p95",
                         .value = o.first_token_s.p95,
                         .note = Short(o.first_token_s.p95) + " s",
                         .colour = 1});
  }
  return DrawBars(plot);
}

std::string Over(const FleetRecord& r, const char* title, const char* label, Better better,
                 double (*value)(const FleetMoment&)) {
  Plot plot{.title = title,
            .subtitle = "What the incident does, from its beginning on",
            .better = better,
            .where = Where(r),
            .x = {.label = "simulated seconds", .least = 0},
            .y = {.label = label, .least = 0}};
  int colour = 0;
  for (const FleetOutcome& o : r.incidents) {
    Series line{.name = NameOf(o.policy), .colour = colour++};
    for (const FleetMoment& m : o.moments) {
      if (m.requests > 0) line.points.push_back({m.from_s, value(m)});
    }
    plot.series.push_back(std::move(line));
  }
  return DrawPlot(plot);
}

void AddTable(const std::vector<FleetOutcome>& outcomes, HtmlPage& page) {
  std::vector<std::vector<std::string>> rows;
  for (const FleetOutcome& o : outcomes) {
    rows.push_back({NameOf(o.policy), Printf("%d", o.replicas), Printf("%.1f", 100 * o.hit_share),
                    Short(o.first_token_s.p50), Short(o.first_token_s.p95),
                    Short(o.first_token_s.p99), Short(o.gap_s.p95), Short(o.tokens_per_second),
                    Printf("%lld", static_cast<long long>(o.refused)),
                    Printf("%lld", static_cast<long long>(o.broken))});
  }
  page.Table({"routed by", "replicas", "cached, %", "first token p50, s", "p95, s", "p99, s",
              "gap p95, s", "tokens/s", "refused", "broken streams"},
             rows);
}

}  // namespace

std::string FleetPage(const FleetRecord& r) {
  HtmlPage page("A fleet, simulated");
  page.Paragraph("Each replica: " + r.replica + ".");
  page.Paragraph("Load: " + r.load + ".");
  if (!r.search.tried.empty()) {
    page.Heading("How many replicas");
    page.Figure(Knee(r), r.search.replicas > 0
                             ? Printf("%d are enough for the target.", r.search.replicas)
                             : "None of these is enough for the target.");
    AddTable(r.search.tried, page);
  }
  if (!r.policies.empty()) {
    page.Heading("How requests are routed");
    page.Figure(Hits(r), "What is cached is not computed again.");
    page.Figure(Waits(r), "From a request's arrival at the balancer.");
    AddTable(r.policies, page);
  }
  if (!r.incidents.empty()) {
    page.Heading("When replicas fail or are replaced");
    page.Figure(Over(r, "Time to the first token, p95", "seconds", Better::kLower,
                     [](const FleetMoment& m) { return m.first_token_p95_s; }),
                "Of the requests that arrived in each slice of time.");
    page.Figure(Over(r, "Prompt tokens found cached", "percent", Better::kHigher,
                     [](const FleetMoment& m) { return 100 * m.hit_share; }),
                "A replica that comes back has an empty memory.");
    page.Figure(Over(r, "Replicas up", "replicas, the fewest", Better::kNeither,
                     [](const FleetMoment& m) { return double(m.least_up); }),
                "The fewest in each slice of time.");
    AddTable(r.incidents, page);
  }
  page.Heading("Assumed");
  for (const std::string& each : r.assumptions) page.Paragraph(each);
  page.Paragraph("hearth " + r.hearth + ", predicted by hearth plan fleet");
  return std::move(page).Finish();
}

}  // namespace hearth
