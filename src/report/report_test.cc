// SPDX-License-Identifier: Apache-2.0
// That pictures and pages say what they are given, and nothing a text could smuggle in.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "report/axis.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/svg.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

size_t Count(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::vector<std::string> Labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks()) {
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  return labels;
}

TEST(EscapeMarkup, DisarmsMarkupAndWhatXmlForbids) {
  EXPECT_EQ(EscapeMarkup("a<b>&\"c\"'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;");
  EXPECT_EQ(EscapeMarkup("tab\tline\nnul\x01 del\x7f"),
            "tab\tline\nnul\xef\xbf\xbd del\xef\xbf\xbd");
  EXPECT_EQ(EscapeMarkup("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5");
  // Cut short, overlong, a surrogate, beyond the last code point, a lone tail.
  for (const char* bad : {"\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
    EXPECT_THAT(EscapeMarkup(bad), HasSubstr("\xef\xbf\xbd")) << bad;
    EXPECT_THAT(EscapeMarkup(bad), Not(HasSubstr(bad)));
  }
}

TEST(Svg, EscapesEveryString) {
  Svg svg(100, 50, "<title>");
  svg.Text({1, 2}, "</text><script>", {});
  const std::string text = std::move(svg).Finish();
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, HasSubstr("&lt;/text&gt;&lt;script&gt;"));
  EXPECT_THAT(text, HasSubstr("<title>&lt;title&gt;</title>"));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
}

TEST(Svg, RefusesPlacesThatAreNone) {
  Svg svg(100, 50, "");
  EXPECT_DEATH(svg.Line({std::numeric_limits<double>::quiet_NaN(), 0}, {1, 1}, {}), "isfinite");
}

TEST(Axis, LinearStartsAtZeroAndEndsOnATick) {
  const std::vector<double> values = {3, 97};
  const Axis axis({}, values, 10, 210);
  EXPECT_EQ(axis.least(), 0);
  EXPECT_EQ(axis.most(), 100);
  EXPECT_THAT(Labels(axis), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_DOUBLE_EQ(axis.At(0), 10);
  EXPECT_DOUBLE_EQ(axis.At(50), 110);
  EXPECT_DOUBLE_EQ(axis.At(100), 210);
}

TEST(Axis, LinearKeepsWhatItIsTold) {
  const std::vector<double> values = {-3, 7};
  const Axis axis({.label = "", .scale = Scale::kLinear, .least = -5.0, .most = 9.0}, values, 0, 1);
  EXPECT_EQ(axis.least(), -5);
  EXPECT_EQ(axis.most(), 9);
  for (const Tick& tick : axis.ticks()) {
    EXPECT_GE(tick.value, -5);
    EXPECT_LE(tick.value, 9.0001);
  }
}

TEST(Axis, LogRoundsToDecadesAndRunsDownwards) {
  const std::vector<double> values = {3, 0, 4000, std::nan("")};
  const Axis axis({.label = "", .scale = Scale::kLog}, values, 400, 0);
  EXPECT_DOUBLE_EQ(axis.least(), 1);
  EXPECT_DOUBLE_EQ(axis.most(), 10000);
  EXPECT_THAT(Labels(axis), ElementsAre("1", "10", "100", "1000", "10k"));
  EXPECT_DOUBLE_EQ(axis.At(1), 400);
  EXPECT_DOUBLE_EQ(axis.At(100), 200);
  EXPECT_DOUBLE_EQ(axis.At(10000), 0);
}

TEST(Axis, NinesSpreadTheTail) {
  const std::vector<double> values = {0, 99.9};
  const Axis axis({.label = "", .scale = Scale::kNines}, values, 0, 300);
  EXPECT_NEAR(axis.At(90), 100, 1e-6);
  EXPECT_NEAR(axis.At(99), 200, 1e-6);
  EXPECT_NEAR(axis.At(99.9), 300, 1e-6);
  EXPECT_THAT(Labels(axis), ElementsAre("0", "50", "75", "90", "95", "99", "99.5", "99.9"));
}

TEST(Axis, NothingOrOneValueStillMakesAnAxis) {
  for (const Scale scale : {Scale::kLinear, Scale::kLog, Scale::kNines}) {
    for (const std::vector<double>& values : {std::vector<double>{}, std::vector<double>{5}}) {
      const Axis axis({.label = "", .scale = scale}, values, 0, 100);
      EXPECT_LT(axis.least(), axis.most());
      EXPECT_TRUE(std::isfinite(axis.At(5)));
      EXPECT_FALSE(axis.ticks().empty());
    }
  }
}

TEST(ShortNumber, IsShort) {
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(0.25), "0.25");
  EXPECT_EQ(ShortNumber(1500), "1500");
  EXPECT_EQ(ShortNumber(-20000), "-20k");
  EXPECT_EQ(ShortNumber(2.5e6), "2.5M");
  EXPECT_EQ(ShortNumber(3e9), "3G");
}

TEST(Plot, DrawsEverySeriesAndSkipsWhatIsNoNumber) {
  Plot plot{.title = "a < b", .x = {.label = "x"}, .y = {.label = "y"}};
  plot.series.push_back({.name = "line", .points = {{0, 1}, {1, std::nan("")}, {2, 3}}});
  plot.series.push_back({.name = "dots",
                         .points = {{0, 2}, {2, 1}},
                         .line = false,
                         .marks = true,
                         .colour = 1,
                         .notes = {"first", "second"}});
  const std::string svg = DrawPlot(plot);
  EXPECT_EQ(Count(svg, "<polyline"), 1);
  EXPECT_EQ(Count(svg, "<circle"), 2 + 1);  // and one in the legend
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr(">second</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Plot, NotesOfNeighboursDoNotCoverEachOther) {
  Plot plot{.title = "t", .x = {}, .y = {}};
  plot.series.push_back({.name = "",
                         .points = {{1, 10}, {1.01, 10.1}, {3, 30}},
                         .line = false,
                         .marks = true,
                         .notes = {"one note", "two note", "far away"}});
  const std::string svg = DrawPlot(plot);
  const auto element = [&](std::string_view note) {
    const size_t start = svg.rfind("<text", svg.find(note));
    return svg.substr(start, svg.find('>', start) - start);
  };
  // The first note takes the right side; the second must take the other.
  EXPECT_THAT(element(">one note"), HasSubstr("text-anchor=\"start\""));
  EXPECT_THAT(element(">two note"), HasSubstr("text-anchor=\"end\""));
}

TEST(Plot, BarsAreAsLongAsTheirValues) {
  BarPlot plot{.title = "t",
               .unit = "u",
               .bars = {{.label = "one", .value = 50}, {.label = "two", .value = 100}}};
  plot.limit = 80;
  plot.limit_name = "limit";
  const std::string svg = DrawBars(plot);
  std::vector<double> widths;
  for (size_t at = svg.find(" rx="); at != svg.npos; at = svg.find(" rx=", at + 1)) {
    const size_t width = svg.rfind("width=\"", svg.rfind(" height", at)) + 7;
    widths.push_back(std::stod(svg.substr(width)));
  }
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_NEAR(widths[1], 2 * widths[0], 0.2);
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 1);
}

// The height that an SVG says it has.
double HeightOf(const std::string& svg) {
  return std::stod(svg.substr(svg.find(" height=\"") + 9));
}

TEST(Plot, SaysWhichWayIsGoodAndWhereItWasMeasured) {
  Plot plot{.title = "t", .better = Better::kLower, .x = {}, .y = {}};
  plot.series.push_back({.name = "", .points = {{0, 1}, {1, 2}}});
  const std::string bare = DrawPlot(plot);
  EXPECT_THAT(bare, HasSubstr(">lower is better</text>"));
  plot.where = "a <CPU>, 2026-11-16";
  const std::string placed = DrawPlot(plot);
  EXPECT_THAT(placed, HasSubstr(">a &lt;CPU&gt;, 2026-11-16</text>"));
  EXPECT_GT(HeightOf(placed), HeightOf(bare));  // it has a line of its own
  plot.better = Better::kNeither;
  EXPECT_THAT(DrawPlot(plot), Not(HasSubstr("is better")));

  BarPlot bars{.title = "t", .better = Better::kHigher, .bars = {{.label = "one", .value = 5}}};
  const std::string low = DrawBars(bars);
  EXPECT_THAT(low, HasSubstr(">higher is better</text>"));
  bars.where = "box, 2026-11-16";
  EXPECT_THAT(DrawBars(bars), HasSubstr(">box, 2026-11-16</text>"));
  EXPECT_GT(HeightOf(DrawBars(bars)), HeightOf(low));
}

TEST(Plot, PercentilesAreSortedAndUseALogAxisForLongTails) {
  const Plot flat = PercentilePlot("t", "ms", {{"a", {3, 1, 2}}});
  ASSERT_EQ(flat.series.size(), 1u);
  EXPECT_EQ(flat.y.scale, Scale::kLinear);
  EXPECT_DOUBLE_EQ(flat.series[0].points[0].y, 1);
  EXPECT_NEAR(flat.series[0].points[1].x, 50, 1e-9);
  EXPECT_DOUBLE_EQ(flat.series[0].points[2].y, 3);
  EXPECT_EQ(PercentilePlot("t", "ms", {{"a", {1, 2, 100}}}).y.scale, Scale::kLog);
  EXPECT_EQ(PercentilePlot("t", "ms", {{"a", {0, 2, 100}}}).y.scale, Scale::kLinear);
  EXPECT_THAT(DrawPlot(flat), HasSubstr("<polyline"));
  EXPECT_THAT(DrawPlot(flat), HasSubstr("lower is better"));
}

TEST(HtmlPage, StandsAloneAndEscapes) {
  HtmlPage page("<x>");
  page.Heading("a & b");
  page.Table({"name", "value"}, {{"<td>", "1"}});
  page.Figure("<svg></svg>", "caption");
  const std::string html = std::move(page).Finish();
  EXPECT_THAT(html, HasSubstr("<h1>&lt;x&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("<td>&lt;td&gt;</td><td>1</td>"));
  EXPECT_THAT(html, HasSubstr("<svg></svg>"));
  for (const char* outside : {"src=", "href=", "@import", "url(", "<script"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

}  // namespace
}  // namespace hearth
