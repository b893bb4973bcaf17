// SPDX-License-Identifier: Apache-2.0
// The page of a load: percentiles, and what happened when.
#include <fmt/format.h>

#include <algorithm>

#include "load/output.h"
#include "report/html.h"
#include "report/plot.h"

namespace hearth {
namespace {

std::vector<double> Scaled(std::vector<double> values, double scale) {
  for (double& value : values) value *= scale;
  return values;
}

// Behind a URL nothing is known of the machine but its address.
std::string Where(const LoadReport& report) {
  if (!report.url.empty()) return fmt::format("{} {}, {}", report.url, report.model, report.date);
  return fmt::format("{}, {}, {} threads, {}", report.processor, report.isa, report.num_threads,
                     report.date);
}

std::string Waits(std::string title, std::string unit, const LoadReport& report,
                  const std::vector<Distribution>& distributions) {
  Plot plot = PercentilePlot(std::move(title), std::move(unit), distributions);
  plot.where = Where(report);
  return DrawPlot(plot);
}

// A line per stream and a dot per token; the long prompt between its two ends.
std::string Timeline(const LoadReport& report) {
  Plot plot;
  plot.title = "Every token of every stream";
  plot.subtitle = "A gap in a row is a pause in a stream; the bar is the long prompt's wait";
  plot.where = Where(report);
  plot.x.label = "seconds";
  plot.y.label = "stream";
  const LongPromptRecord& record = report.beside;
  double y = 1;
  for (const LoadReply& stream : record.streams) {
    Series series;
    series.line = false;
    series.marks = true;
    for (const double s : stream.heard_s) series.points.push_back({s, y});
    plot.series.push_back(std::move(series));
    y += 1;
  }
  Series prompt;
  prompt.name = "long prompt";
  prompt.named_at_end = true;
  prompt.colour = 1;
  prompt.points = {{record.from_s, y}, {record.to_s, y}};
  plot.series.push_back(std::move(prompt));
  return DrawPlot(plot);
}

// How long each token was waited for, over time.
std::string GapPlot(const LoadReport& report, const std::vector<LoadReply>& replies) {
  Plot plot;
  plot.title = "Between tokens";
  plot.better = Better::kLower;
  plot.where = Where(report);
  plot.x.label = "seconds";
  plot.y.label = "ms";
  plot.y.least = 0;
  Series gaps;
  gaps.line = false;
  gaps.marks = true;
  double last_s = 0;
  for (const LoadReply& reply : replies) {
    for (size_t i = 1; i < reply.heard_s.size(); ++i) {
      gaps.points.push_back({reply.heard_s[i], 1e3 * (reply.heard_s[i] - reply.heard_s[i - 1])});
      last_s = std::max(last_s, reply.heard_s[i]);
    }
  }
  plot.series.push_back(std::move(gaps));
  Series bound;
  bound.name = "bound";
  bound.named_at_end = true;
  bound.dashed = true;
  bound.colour = 1;
  bound.points = {{0, 1e3 * report.itl_target_s}, {last_s, 1e3 * report.itl_target_s}};
  plot.series.push_back(std::move(bound));
  return DrawPlot(plot);
}

void AddLongPrompt(const LoadReport& report, HtmlPage& page) {
  const LongPromptRecord& record = report.beside;
  page.Figure(Timeline(report), "Streams while a long prompt is computed in chunks beside them.");
  page.Figure(GapPlot(report, record.streams), "What the readers waited for each token.");
  page.Figure(Waits("Between tokens", "ms", report,
                    {{"before", Scaled(TokenGaps(record.streams, 0, record.from_s), 1e3)},
                     {"beside the prompt",
                      Scaled(GapsBeside(record.streams, record.from_s, record.to_s), 1e3)}}),
              "Before the prompt and beside it.");
}

void AddChats(const LoadReport& report, HtmlPage& page) {
  std::vector<LoadReply> first, later;
  for (const LoadReply& reply : report.load.replies) {
    (reply.is_first_turn ? first : later).push_back(reply);
  }
  page.Figure(
      Waits("Until the first token", "s", report,
            {{"first turns", FirstTokenSeconds(first)}, {"later turns", FirstTokenSeconds(later)}}),
      "Later turns find the turns before them in the cache.");
  page.Figure(
      Waits("Between tokens", "ms", report, {{"", Scaled(TokenGaps(report.load.replies), 1e3)}}),
      "All streams together.");
  page.Figure(GapPlot(report, report.load.replies), "What the readers waited for each token.");
  if (!report.own_rate) return;
  BarPlot bars;
  bars.title = "Tokens per second";
  bars.better = Better::kHigher;
  bars.where = Where(report);
  bars.unit = "tokens/s";
  bars.bars = {{"chats, generated", report.generated_per_s()},
               {"chats, prompts included", report.computed_per_s()}};
  std::string caption = "Chats through the engine, and as many sequences without one.";
  if (report.steady) {
    bars.bars.push_back({"generated while all are busy", report.steady->generated_per_s()});
    const double left = 1 - report.steady->prefill_share.value_or(0);
    bars.bars.push_back({"backend, in the time prompts left", *report.own_rate * left});
    caption += fmt::format(" All clients were busy for {:.1f} s, from {:.1f} s on.",
                           report.steady->window.seconds(), report.steady->window.from_s);
  }
  bars.bars.push_back({"backend alone", *report.own_rate});
  page.Figure(DrawBars(bars), caption);
}

}  // namespace

std::string LoadPage(const LoadReport& report) {
  HtmlPage page("Load on " + report.model);
  page.Paragraph(report.url.empty()
                     ? fmt::format("{}, {}, {} threads, {}. Others used {:.0f} % of the machine.",
                                   report.processor, report.isa, report.num_threads, report.date,
                                   100 * report.others)
                     : Where(report) + ".");
  report.long_prompt ? AddLongPrompt(report, page) : AddChats(report, page);
  return std::move(page).Finish();
}

}  // namespace hearth
