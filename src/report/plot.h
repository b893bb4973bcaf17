// SPDX-License-Identifier: Apache-2.0
// The pictures of our reports: lines and points over two axes, bars, and percentiles.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"
namespace hearth {

// Which way is good, for readers who do not know the measure.
enum class Better : unsigned char { kNeither, kLower, kHigher };

struct Series {
  std::string name = {};  // in the legend; empty for none
  std::vector<Point> points = {};
  bool line = true, marks = false;
  bool dashed = false;
  int colour = 0;                       // of SeriesColour
  std::vector<std::string> notes = {};  // beside the points, as many as there are; empty for none
  // Beside the line's last point instead of in the legend: for limits and rooflines.
  bool named_at_end = false;
};
struct Plot {
  std::string title = {}, subtitle = {};
  Better better = Better::kNeither;
  std::string where = {};  // the machine and the date, below the picture
  AxisSpec x = {}, y = {};
  std::vector<Series> series = {};
  double width = 760, height = 420;
};
std::string DrawPlot(const Plot& plot);

struct Bar {
  std::string label = {};
  double value = 0;
  std::string note = {};             // behind the bar; empty: the value
  std::optional<double> worst = {};  // a thin line from the value to here
  int colour = 0;
};
struct BarPlot {
  std::string title = {}, subtitle = {};
  Better better = Better::kNeither;
  std::string where = {};
  std::string unit = {};
  std::vector<Bar> bars = {};
  std::optional<double> limit = {};  // a dashed line, e.g. the roofline
  std::string limit_name = {};
  double width = 760;
};
std::string DrawBars(const BarPlot& plot);

// A line per list of values: which share of them stays below which value. Values on a log axis when
// they span more than a decade and a half. For waits: lower is better.
struct Distribution {
  std::string name = {};
  std::vector<double> values = {};
};
Plot PercentilePlot(std::string title, std::string value_label,
                    const std::vector<Distribution>& distributions);

}  // namespace hearth
