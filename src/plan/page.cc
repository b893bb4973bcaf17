// SPDX-License-Identifier: Apache-2.0
// A plan as a page with pictures, in one file that loads nothing.
#include "plan/plan.h"
#include "report/html.h"
#include "report/plot.h"

namespace hearth {
namespace {

constexpr double kGib = 1 << 30;

double InGib(int64_t bytes) { return static_cast<double>(bytes) / kGib; }

std::string Short(double value) { return Printf(value >= 100 ? "%.0f" : "%.3g", value); }

// Below every picture: what it is of.
std::string Where(const PlanRecord& r) {
  const std::string date = r.date.empty() ? "" : ", " + r.date;
  return r.model + ", " + r.machine + (r.is_here ? "" : " (described)") +
         Printf(", %d threads, ", r.rates.threads) + r.isa + date;
}

Series Line(std::string name, const std::vector<PlannedPoint>& points,
            double (*value)(const PlannedPoint&), int colour) {
  Series out{.name = std::move(name), .points = {}, .marks = true, .colour = colour};
  for (const PlannedPoint& p : points) out.points.push_back({double(p.at), value(p)});
  return out;
}

std::string Users(const PlanRecord& r) {
  Plot plot{.title = "Tokens per second by users at a time",
            .subtitle = "Replies that are written together, at the start of their context",
            .better = Better::kHigher,
            .where = Where(r),
            .x = {.label = "users at a time", .least = 0},
            .y = {.label = "tokens per second", .least = 0}};
  plot.series.push_back(Line(
      "all together", r.by_users, [](const PlannedPoint& p) { return p.tokens_per_second; }, 0));
  plot.series.push_back(Line(
      "each of them", r.by_users, [](const PlannedPoint& p) { return p.tokens_per_second / p.at; },
      1));
  return DrawPlot(plot);
}

std::string Depth(const PlanRecord& r) {
  Plot plot{.title = "Tokens per second by length of the conversation",
            .subtitle = "One user; every token looks at all tokens before it",
            .better = Better::kHigher,
            .where = Where(r),
            .x = {.label = "tokens of context", .scale = Scale::kLog},
            .y = {.label = "tokens per second", .least = 0}};
  plot.series.push_back(
      Line("", r.by_depth, [](const PlannedPoint& p) { return p.tokens_per_second; }, 0));
  return DrawPlot(plot);
}

std::string Prompts(const PlanRecord& r) {
  Plot plot{.title = "Time to read a prompt",
            .subtitle = "One user, nothing found in a cache; the first token comes after it",
            .better = Better::kLower,
            .where = Where(r),
            .x = {.label = "tokens of the prompt", .scale = Scale::kLog},
            .y = {.label = "seconds", .scale = Scale::kLog}};
  plot.series.push_back(Line("", r.by_prompt, [](const PlannedPoint& p) { return p.seconds; }, 2));
  return DrawPlot(plot);
}

std::string Memory(const PlanRecord& r) {
  const FitFigures& f = r.fit;
  BarPlot plot{.title = "Memory",
               .subtitle = "As `hearth serve` would share it out",
               .better = Better::kNeither,
               .where = Where(r),
               .unit = "GiB",
               .limit = InGib(static_cast<int64_t>(f.usable_bytes)),
               .limit_name = "usable"};
  const auto add = [&plot](const char* label, int64_t bytes, int colour) {
    plot.bars.push_back({.label = label,
                         .value = InGib(bytes),
                         .note = Printf("%.2f", InGib(bytes)),
                         .colour = colour});
  };
  add("weights", f.weight_bytes, 0);
  add("KV cache", f.kv_bytes, 1);
  add("a step's work", f.other_bytes, 2);
  add("the server", f.server_bytes, 3);
  add("together", f.total_bytes(), 5);
  return DrawBars(plot);
}

std::string Helps(const PlanRecord& r) {
  BarPlot plot{.title = "What would help",
               .subtitle = "Decode of one user, 32 users, and prompts, beside now",
               .better = Better::kHigher,
               .where = Where(r),
               .unit = "times as fast",
               .limit = 1,
               .limit_name = "now"};
  for (const PlannedHelp& h : r.helps) {
    const std::string what = h.what.substr(0, h.what.find(" ("));
    const auto add = [&](const char* kind, double value, int colour) {
      plot.bars.push_back({.label = what + ": " + kind,
                           .value = value,
                           .note = Printf("%.2fx", value),
                           .colour = colour});
    };
    add("1 user", h.decode, 0);
    add("32 users", h.users, 1);
    add("prompts", h.prefill, 2);
  }
  return DrawBars(plot);
}

void AddWaits(const LoadOutcome& o, const std::string& label, BarPlot& plot) {
  const auto add = [&](const char* name, double value, int colour) {
    plot.bars.push_back({.label = label + ", " + name,
                         .value = value,
                         .note = Short(value) + " s",
                         .colour = colour});
  };
  add("median", o.first_token_s.p50, 0);
  add("p95", o.first_token_s.p95, 1);
  add("p99", o.first_token_s.p99, 2);
}

std::string Load(const PlanRecord& r) {
  BarPlot plot{.title = Printf("Time to the first token with %d users", r.load->users),
               .subtitle = Printf("Prompts of %d tokens, replies of %d, %.0f s to think",
                                  r.load->prompt, r.load->reply, r.load->think_s),
               .better = Better::kLower,
               .where = Where(r),
               .unit = "seconds",
               .limit = r.target->first_token_s,
               .limit_name = "target for 95 of 100"};
  if (r.one_server) AddWaits(*r.one_server, "one server", plot);
  if (r.replicas->replicas > 1) {
    AddWaits(r.replicas->outcome, Printf("%d servers", r.replicas->replicas), plot);
  }
  return DrawBars(plot);
}

void AddFigures(const PlanRecord& r, HtmlPage& page) {
  if (!r.by_users.empty()) {
    page.Figure(Users(r), "More users share each read of the weights, until arithmetic bounds it.");
  }
  if (!r.by_depth.empty()) {
    page.Figure(Depth(r), "Attention grows with the context, the weights do not.");
    page.Figure(Prompts(r), "A prompt that is found in the cache takes no such time.");
  }
  page.Figure(Memory(r), Printf("%d tokens of context for one user, %lld over all users.",
                                r.fit.context(), static_cast<long long>(r.fit.kv_tokens)));
  if (!r.helps.empty()) page.Figure(Helps(r), "From the same times with other rates.");
  if (r.load && r.replicas) {
    page.Figure(Load(r), "From the engine's own scheduler under a simulated clock.");
  }
}

void AddTables(const PlanRecord& r, HtmlPage& page) {
  std::vector<std::vector<std::string>> rows;
  for (const PlannedCase& c : r.cases) {
    rows.push_back({c.name, Short(c.tokens_per_second), Short(c.seconds), c.bound});
  }
  page.Heading("Speed");
  page.Table({"case", "tokens/s", "seconds of a step or prompt", "bound by"}, rows);
  page.Heading("Settings of hearth serve");
  for (const PlannedSetting& s : r.settings) page.Paragraph(s.flag + " " + s.value + ": " + s.why);
}

}  // namespace

std::string PlanPage(const PlanRecord& r) {
  HtmlPage page(r.model + " on " + r.machine);
  page.Paragraph(
      Printf("%s, %.2f GB of weights, %.2f GB read per token. %d threads, %s; reads %.1f GB/s, "
             "%.2f TOP/s of int8 (%s).",
             r.family.c_str(), static_cast<double>(r.costs.weight_bytes) / 1e9,
             static_cast<double>(r.costs.decode_bytes) / 1e9, r.rates.threads, r.isa.c_str(),
             r.rates.stream / 1e9, r.rates.int8 / 1e12,
             r.is_here ? "measured" : "from the machine's description"));
  if (!r.fit.problem.empty()) {
    page.Paragraph("It does not fit: " + r.fit.problem);
  } else {
    AddFigures(r, page);
    AddTables(r, page);
  }
  page.Heading("Assumed");
  for (const std::string& each : r.assumptions) page.Paragraph(each);
  page.Paragraph("hearth " + r.hearth + ", predicted by hearth plan");
  return std::move(page).Finish();
}

}  // namespace hearth
