// SPDX-License-Identifier: Apache-2.0
// The benchmark's page: the machine's roofline with every case on it, rates, and the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/output.h"
#include "bench/phases.h"
#include "report/html.h"
#include "report/plot.h"

namespace hearth {
namespace {

constexpr double kGiga = 1e9;

std::string Where(const BenchRecord& record) {
  return fmt::format("{}, {}, {} threads, {}", record.processor, record.isa, record.num_threads,
                     record.date);
}

double Intensity(const Measurement& m) { return m.work.flops / m.work.bytes; }

// A flat limit from where memory stops being the narrower one.
Series Ceiling(std::string name, double peak, double bytes_per_second, double right, int colour) {
  return {.name = std::move(name),
          .points = {{peak / bytes_per_second, peak / kGiga}, {right, peak / kGiga}},
          .dashed = true,
          .colour = colour,
          .notes = {},
          .named_at_end = true};
}

std::string RooflinePicture(const BenchRecord& record) {
  const double stream = record.roofline(kStreamRead), plain = record.roofline(kPlainRead);
  const double amx = record.roofline(kAmxPeak), vnni = record.roofline(kVnniPeak);
  const double peak = std::max(amx, vnni);
  double left = 1, right = peak > 0 ? 30 * peak / stream : 1000;
  Series points{.name = "measured", .points = {}, .line = false, .marks = true, .colour = 1};
  for (const Measurement& m : record.model->measurements) {
    points.points.push_back({Intensity(m), m.flops_per_second() / kGiga});
    points.notes.push_back(NameOf(m.what));
    left = std::min(left, Intensity(m));
    right = std::max(right, Intensity(m));
  }
  left = std::pow(10, std::floor(std::log10(left)));
  right = std::pow(10, std::ceil(std::log10(right)));
  Plot plot{.title = "Roofline of this machine",
            .subtitle = "What it could do at most at each intensity, and what the cases reach",
            .better = Better::kHigher,
            .where = Where(record),
            .x = {.label = "operations per byte read",
                  .scale = Scale::kLog,
                  .least = left,
                  .most = right},
            .y = {.label = "GFLOP/s", .scale = Scale::kLog},
            .height = 480};
  const double bend = peak > 0 ? peak / stream : right;
  plot.series.push_back({.name = fmt::format("stream read, {}", WithPrefix(stream, "B/s")),
                         .points = {{left, stream * left / kGiga}, {bend, stream * bend / kGiga}},
                         .colour = 0});
  plot.series.push_back({.name = fmt::format("plain read, {}", WithPrefix(plain, "B/s")),
                         .points = {{left, plain * left / kGiga}, {bend, plain * bend / kGiga}},
                         .dashed = true,
                         .colour = 0});
  if (amx > 0) {
    Series roof = Ceiling("AMX int8, " + WithPrefix(amx, "OP/s"), amx, stream, right, 2);
    roof.dashed = false;
    plot.series.push_back(roof);
    plot.series.push_back(Ceiling("AMX, 16-bit activations", amx / 2, stream, right, 2));
  }
  if (vnni > 0) {
    plot.series.push_back(
        Ceiling("AVX-512 VNNI int8, " + WithPrefix(vnni, "OP/s"), vnni, stream, right, 3));
  }
  plot.series.push_back(std::move(points));
  return DrawPlot(plot);
}

std::string Rates(const BenchRecord& record) {
  BarPlot plot{.title = "Tokens per second",
               .subtitle = fmt::format("Best of {} rounds; the white line reaches to the worst",
                                       record.rounds),
               .better = Better::kHigher,
               .where = Where(record),
               .unit = "tokens per second, all sequences together"};
  for (const Measurement& m : record.model->measurements) {
    const double worst = static_cast<double>(TotalTokens(m.what)) / m.seconds.worst();
    plot.bars.push_back({.label = NameOf(m.what),
                         .value = m.tokens_per_second(),
                         .note = fmt::format("{:.4g}", m.tokens_per_second()),
                         .worst = worst,
                         .colour = m.what.kind == BenchKind::kPrefill ? 2 : 0});
  }
  return DrawBars(plot);
}

std::string Traffic(const BenchRecord& record) {
  BarPlot plot{.title = "Memory read while decoding",
               .subtitle = "The bytes a step must read, over the time it took",
               .better = Better::kHigher,
               .where = Where(record),
               .unit = "GB/s",
               .limit = record.roofline(kStreamRead) / kGiga,
               .limit_name = "stream read"};
  plot.bars.push_back({.label = "plain read",
                       .value = record.roofline(kPlainRead) / kGiga,
                       .note = fmt::format("{:.1f}", record.roofline(kPlainRead) / kGiga),
                       .colour = 5});
  for (const Measurement& m : record.model->measurements) {
    if (m.what.kind != BenchKind::kDecode) continue;
    const double share = m.bytes_per_second() / record.roofline(kPlainRead);
    plot.bars.push_back({.label = NameOf(m.what),
                         .value = m.bytes_per_second() / kGiga,
                         .note = fmt::format("{:.1f}, {:.0f} % of plain",
                                             m.bytes_per_second() / kGiga, 100 * share),
                         .worst = m.work.bytes / m.seconds.worst() / kGiga});
  }
  return DrawBars(plot);
}

void AddRooflines(const BenchRecord& record, HtmlPage& page) {
  std::vector<std::vector<std::string>> rows;
  for (const Roofline& roofline : record.rooflines) {
    if (roofline.absent) {
      rows.push_back({roofline.name, "absent", ""});
      continue;
    }
    rows.push_back({roofline.name, WithPrefix(roofline.rates.best(), roofline.unit.c_str()),
                    fmt::format("{:.0f} %", 100 * roofline.rates.spread())});
  }
  page.Table({"roofline", "best", "spread"}, rows);
}

void AddCases(const BenchRecord& record, HtmlPage& page) {
  std::vector<std::vector<std::string>> rows;
  for (const Measurement& m : record.model->measurements) {
    rows.push_back({NameOf(m.what) + (m.copied_context ? " *" : ""),
                    fmt::format("{:.4g}", m.tokens_per_second()),
                    fmt::format("{:.0f} %", 100 * m.seconds.spread()),
                    fmt::format("{:.1f}", m.bytes_per_second() / kGiga),
                    fmt::format("{:.0f}", m.flops_per_second() / kGiga),
                    fmt::format("{:.1f}", Intensity(m)), fmt::format("{:.3f}", m.seconds.best())});
  }
  page.Table({"case", "tokens/s", "spread", "GB/s", "GFLOP/s", "operations/byte", "seconds"}, rows);
  page.Paragraph(
      "A case marked * decodes after a context whose blocks were copied from its first tokens "
      "instead of computed: the same bytes to read, less time to wait.");
}

void AddPhases(const BenchRecord& record, HtmlPage& page) {
  const std::vector<std::vector<std::string>> rows = PhaseRows(record);
  if (rows.empty()) return;
  page.Heading("Phases of a step");
  page.Table(PhaseHeadings(), rows);
  page.Paragraph(
      "Of the best round. Waiting is the share of the workers' time spent idle, at barriers or "
      "behind serial code; it is part of the times beside it.");
}

}  // namespace

std::string BenchPage(const BenchRecord& record) {
  HtmlPage page(record.model ? "Hearth on " + record.model->name : "Hearth: this machine");
  page.Paragraph(fmt::format("{} · {} · {} threads · {} of memory · {} · Hearth {}",
                             record.processor, record.isa, record.num_threads,
                             WithPrefix(static_cast<double>(record.memory_bytes), "B"), record.date,
                             record.version));
  page.Paragraph(fmt::format(
      "Cases and rooflines took turns for {} rounds; the best of each counts, spread is how far "
      "the worst fell behind. Others used {:.0f} % of the processors meanwhile.",
      record.rounds, 100 * record.others));
  if (record.model) {
    const BenchedModel& model = *record.model;
    page.Figure(RooflinePicture(record),
                "Under the slope memory is the limit, under the flats arithmetic. Activations of "
                "16 bits take two "
                "int8 products each.");
    page.Figure(Rates(record), "");
    page.Figure(Traffic(record),
                "Batches share each weight they read, so they read less per token.");
    page.Heading("Cases");
    AddCases(record, page);
    AddPhases(record, page);
    page.Paragraph(fmt::format(
        "{} of weights, {} read per decoded token. Loaded in {:.2f} s, first token after {:.2f} s, "
        "peak resident {}.",
        WithPrefix(static_cast<double>(model.costs.weight_bytes), "B"),
        WithPrefix(static_cast<double>(model.costs.decode_bytes), "B"), model.load_seconds,
        model.first_token_seconds, WithPrefix(static_cast<double>(model.peak_resident), "B")));
  }
  page.Heading("Rooflines");
  AddRooflines(record, page);
  return std::move(page).Finish();
}

}  // namespace hearth
