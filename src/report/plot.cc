// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hearth {
namespace {

constexpr double kLeft = 74, kRight = 28, kTop = 64, kBottom = 58;
constexpr double kLegendRow = 20;

// A line of its own below everything, so that it meets no label.
constexpr double kFoot = 20;
double FootOf(const std::string& where) { return where.empty() ? 0 : kFoot; }

// What Plot and BarPlot have in common: what it is, which way is good, where and when.
template <typename Picture>
void DrawFrameTexts(Svg& svg, const Picture& plot, double height) {
  svg.Text({20, 28}, plot.title, {.size = 16, .bold = true});
  svg.Text({20, 47}, plot.subtitle, {.size = 12, .colour = kFaint});
  if (plot.better != Better::kNeither) {
    svg.Text({plot.width - kRight, 47},
             plot.better == Better::kLower ? "lower is better" : "higher is better",
             {.size = 12, .anchor = Anchor::kEnd, .bold = true});
  }
  if (!plot.where.empty()) {
    svg.Text({plot.width - kRight, height - 8}, plot.where,
             {.size = 11, .anchor = Anchor::kEnd, .colour = kFaint});
  }
}

struct Frame {
  Axis x, y;
  double left, right, top, bottom;
};

void DrawAxes(Svg& svg, const Frame& frame, const Plot& plot) {
  for (const Tick& tick : frame.x.ticks()) {
    const double x = frame.x.At(tick.value);
    svg.Line({x, frame.top}, {x, frame.bottom},
             {.colour = kGrid, .width = tick.label.empty() ? 0.5 : 1.0});
    svg.Text({x, frame.bottom + 18}, tick.label,
             {.size = 12, .anchor = Anchor::kMiddle, .colour = kFaint});
  }
  for (const Tick& tick : frame.y.ticks()) {
    const double y = frame.y.At(tick.value);
    svg.Line({frame.left, y}, {frame.right, y},
             {.colour = kGrid, .width = tick.label.empty() ? 0.5 : 1.0});
    svg.Text({frame.left - 8, y + 4}, tick.label,
             {.size = 12, .anchor = Anchor::kEnd, .colour = kFaint});
  }
  svg.Line({frame.left, frame.bottom}, {frame.right, frame.bottom}, {.colour = kFaint});
  svg.Line({frame.left, frame.top}, {frame.left, frame.bottom}, {.colour = kFaint});
  svg.Text({(frame.left + frame.right) / 2, frame.bottom + 42}, plot.x.label,
           {.size = 12, .anchor = Anchor::kMiddle});
  svg.Text({20, (frame.top + frame.bottom) / 2}, plot.y.label,
           {.size = 12, .anchor = Anchor::kMiddle, .turn = -90});
}

// Values outside the frame are cut at its edge by leaving them out; our series are drawn within.
std::vector<Point> PlacesOf(const Series& series, const Frame& frame) {
  std::vector<Point> places;
  for (const Point& point : series.points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    places.push_back({frame.x.At(point.x), frame.y.At(point.y)});
  }
  return places;
}

void DrawSeries(Svg& svg, const Series& series, const Frame& frame) {
  HEARTH_CHECK(series.notes.empty() || series.notes.size() == series.points.size());
  const char* colour = SeriesColour(series.colour);
  const std::vector<Point> places = PlacesOf(series, frame);
  if (series.line) {
    svg.Path(places, {.colour = colour, .width = 2, .dashed = series.dashed});
  }
  for (size_t i = 0; i < places.size() && series.marks; ++i) svg.Circle(places[i], 5, colour);
}

struct Box {
  double left, right, top, bottom;
};
bool Overlap(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

// Beside its point, where no note stands yet: right, else lower or higher, else left.
void DrawNote(Svg& svg, Point at, const std::string& note, const char* colour, double right_edge,
              std::vector<Box>& taken) {
  constexpr double kSize = 12, kLetter = 7.2, kGap = 9;
  const double width = kLetter * static_cast<double>(note.size());
  for (const double down : {0.0, 13.0, -13.0, 26.0, -26.0}) {
    for (const bool right : {true, false}) {
      const double left = right ? at.x + kGap : at.x - kGap - width;
      const double middle = at.y + down;
      const Box box{left, left + width, middle - kSize / 2, middle + kSize / 2};
      const bool fits =
          box.right < right_edge &&
          std::none_of(
              taken.begin(), taken.end(), [&](const Box& other) { return Overlap(box, other); });
      if (!fits) continue;
      taken.push_back(box);
      svg.Text({right ? box.left : box.right, middle + 4}, note,
               {.size = kSize,
                .anchor = right ? Anchor::kStart : Anchor::kEnd,
                .colour = colour,
                .bold = true,
                .halo = true});
      return;
    }
  }
  svg.Text({at.x + kGap, at.y + 4}, note, {.size = kSize, .colour = colour, .halo = true});
}

// After all lines and points, so that nothing is drawn over them.
void DrawNotes(Svg& svg, const Series& series, const Frame& frame, std::vector<Box>& taken) {
  const char* colour = SeriesColour(series.colour);
  const std::vector<Point> places = PlacesOf(series, frame);
  if (places.size() == series.notes.size()) {
    for (const Point& place : places)
      taken.push_back({place.x - 5, place.x + 5, place.y - 5, place.y + 5});
    for (size_t i = 0; i < places.size(); ++i) {
      DrawNote(svg, places[i], series.notes[i], colour, frame.right, taken);
    }
  }
  if (series.named_at_end && !places.empty()) {
    svg.Text({places.back().x - 6, places.back().y - 7}, series.name,
             {.size = 12, .anchor = Anchor::kEnd, .colour = colour, .halo = true});
  }
}

// Returns how far down it reaches.
double DrawLegend(Svg& svg, const Plot& plot) {
  constexpr double kPerLetter = 7;
  double x = 20, y = kTop;
  bool any = false;
  for (const Series& series : plot.series) {
    if (series.name.empty() || series.named_at_end) continue;
    const double width = 34 + kPerLetter * static_cast<double>(series.name.size());
    if (any && x + width > plot.width - kRight) {
      x = 20;
      y += kLegendRow;
    }
    const char* colour = SeriesColour(series.colour);
    if (series.line) {
      svg.Line({x, y}, {x + 18, y}, {.colour = colour, .width = 2, .dashed = series.dashed});
    }
    if (series.marks) svg.Circle({x + 9, y}, 5, colour);
    svg.Text({x + 24, y + 4}, series.name, {.size = 12});
    x += width;
    any = true;
  }
  return any ? y + kLegendRow : kTop;
}

}  // namespace

std::string DrawPlot(const Plot& plot) {
  const double height = plot.height + FootOf(plot.where);
  Svg svg(plot.width, height, plot.title);
  DrawFrameTexts(svg, plot, height);
  const double top = DrawLegend(svg, plot);
  std::vector<double> xs, ys;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  const double right = plot.width - kRight, bottom = plot.height - kBottom;
  const Frame frame{
      Axis(plot.x, xs, kLeft, right), Axis(plot.y, ys, bottom, top), kLeft, right, top, bottom};
  DrawAxes(svg, frame, plot);
  for (const Series& series : plot.series) DrawSeries(svg, series, frame);
  std::vector<Box> taken;
  for (const Series& series : plot.series) DrawNotes(svg, series, frame, taken);
  return std::move(svg).Finish();
}

std::string DrawBars(const BarPlot& plot) {
  constexpr double kRow = 30, kThick = 18, kLetter = 6.6;
  size_t longest = 0;
  std::vector<double> values;
  for (const Bar& bar : plot.bars) {
    longest = std::max(longest, bar.label.size());
    values.push_back(bar.value);
  }
  if (plot.limit) values.push_back(*plot.limit);
  const double left = 30 + kLetter * static_cast<double>(longest);
  const double right = plot.width - 150, top = kTop + (plot.limit ? 18 : 0);
  const double bottom = top + kRow * static_cast<double>(plot.bars.size());
  const double height = bottom + 52 + FootOf(plot.where);
  Svg svg(plot.width, height, plot.title);
  DrawFrameTexts(svg, plot, height);
  const Axis axis({.label = plot.unit}, values, left, right);
  for (const Tick& tick : axis.ticks()) {
    const double x = axis.At(tick.value);
    svg.Line({x, top}, {x, bottom}, {.colour = kGrid});
    svg.Text({x, bottom + 18}, tick.label,
             {.size = 12, .anchor = Anchor::kMiddle, .colour = kFaint});
  }
  svg.Text({(left + right) / 2, bottom + 40}, plot.unit, {.size = 12, .anchor = Anchor::kMiddle});
  if (plot.limit) {
    const double x = axis.At(*plot.limit);
    svg.Line({x, top - 4}, {x, bottom}, {.colour = kInk, .width = 1.5, .dashed = true});
    svg.Text({x, top - 9}, plot.limit_name, {.size = 12, .anchor = Anchor::kMiddle});
  }
  double y = top + (kRow - kThick) / 2;
  for (const Bar& bar : plot.bars) {
    const double end = std::isfinite(bar.value) ? axis.At(bar.value) : left;
    svg.Text({left - 8, y + kThick - 4}, bar.label, {.size = 13, .anchor = Anchor::kEnd});
    svg.Rect({left, y}, std::max(1.0, end - left), kThick, SeriesColour(bar.colour), 2);
    double note_at = end;
    if (bar.worst && std::isfinite(*bar.worst)) {
      const double worst = axis.At(*bar.worst), middle = y + kThick / 2;
      svg.Line({worst, middle}, {end, middle}, {.colour = "#ffffff", .width = 1.5});
      svg.Line({worst, middle - 4}, {worst, middle + 4}, {.colour = "#ffffff", .width = 1.5});
      note_at = std::max(note_at, worst);
    }
    svg.Text({note_at + 7, y + kThick - 4}, bar.note.empty() ? ShortNumber(bar.value) : bar.note,
             {.size = 13, .bold = true, .halo = true});
    y += kRow;
  }
  svg.Line({left, top}, {left, bottom}, {.colour = kFaint});
  return std::move(svg).Finish();
}

Plot PercentilePlot(std::string title, std::string value_label,
                    const std::vector<Distribution>& distributions) {
  constexpr double kLogFrom = 30;  // a decade and a half
  Plot plot;
  plot.title = std::move(title);
  plot.better = Better::kLower;
  plot.x = {.label = "percentile", .scale = Scale::kNines};
  plot.y.label = std::move(value_label);
  double least = INFINITY, most = 0;
  int colour = 0;
  for (const Distribution& distribution : distributions) {
    Series series{.name = distribution.name, .colour = colour++};
    std::vector<double> values = distribution.values;
    std::sort(values.begin(), values.end());
    const auto count = static_cast<double>(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      // The i-th of n stands for the middle of its n-th part; the last one never reaches 100.
      series.points.push_back({100 * (static_cast<double>(i) + 0.5) / count, values[i]});
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    plot.series.push_back(std::move(series));
  }
  if (least > 0 && most > kLogFrom * least) plot.y.scale = Scale::kLog;
  return plot;
}

}  // namespace hearth
