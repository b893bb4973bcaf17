// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/result.h"

namespace hearth {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

// Bytes of the well-formed character at the start of `text`; 0 when there is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

// Pixels; a tenth is finer than anybody sees. A number that is none would spoil the whole picture.
std::string Number(double value) {
  HEARTH_CHECK(std::isfinite(value));
  std::string text = Printf("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string StrokeOf(const Stroke& stroke) {
  return Printf("stroke=\"%s\" stroke-width=\"%s\"%s", stroke.colour, Number(stroke.width).c_str(),
                stroke.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

}  // namespace

std::string EscapeMarkup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0 || byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      out += kReplacement;
    } else if (byte == '&') {
      out += "&amp;";
    } else if (byte == '<') {
      out += "&lt;";
    } else if (byte == '>') {
      out += "&gt;";
    } else if (byte == '"') {
      out += "&quot;";
    } else if (byte == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

const char* SeriesColour(int index) {
  constexpr const char* kColours[] = {"#0b6bb5", "#d1580a", "#12876b",
                                      "#a5348f", "#8a6d00", "#475a6b"};
  return kColours[static_cast<size_t>(index) % std::size(kColours)];
}

Svg::Svg(double width, double height, std::string_view title) {
  const std::string w = Number(width), h = Number(height);
  out_ = Printf(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" width=\"%s\" height=\"%s\" "
      "role=\"img\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
      "<title>%s</title>\n",
      w.c_str(), h.c_str(), w.c_str(), h.c_str(), EscapeMarkup(title).c_str());
  Rect({0, 0}, width, height, "#ffffff");
}

void Svg::Line(Point from, Point to, const Stroke& stroke) {
  out_ += Printf("<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" %s/>\n", Number(from.x).c_str(),
                 Number(from.y).c_str(), Number(to.x).c_str(), Number(to.y).c_str(),
                 StrokeOf(stroke).c_str());
}

void Svg::Path(std::span<const Point> points, const Stroke& stroke) {
  if (points.empty()) return;
  std::string list;
  for (const Point& point : points) list += Number(point.x) + "," + Number(point.y) + " ";
  list.pop_back();
  out_ += Printf("<polyline points=\"%s\" fill=\"none\" stroke-linejoin=\"round\" %s/>\n",
                 list.c_str(), StrokeOf(stroke).c_str());
}

void Svg::Circle(Point centre, double radius, const char* fill) {
  out_ += Printf(
      "<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\" stroke=\"#ffffff\" "
      "stroke-width=\"1.5\"/>\n",
      Number(centre.x).c_str(), Number(centre.y).c_str(), Number(radius).c_str(), fill);
}

void Svg::Rect(Point corner, double width, double height, const char* fill, double rounding) {
  const std::string round =
      rounding > 0 ? Printf(" rx=\"%s\"", Number(rounding).c_str()) : std::string();
  out_ += Printf("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"%s fill=\"%s\"/>\n",
                 Number(corner.x).c_str(), Number(corner.y).c_str(), Number(width).c_str(),
                 Number(height).c_str(), round.c_str(), fill);
}

void Svg::Text(Point at, std::string_view text, const TextStyle& style) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  const std::string x = Number(at.x), y = Number(at.y);
  std::string more;
  if (style.bold) more += " font-weight=\"600\"";
  if (style.halo) {
    more +=
        " stroke=\"#ffffff\" stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\"";
  }
  if (style.turn != 0) {
    more +=
        Printf(" transform=\"rotate(%s %s %s)\"", Number(style.turn).c_str(), x.c_str(), y.c_str());
  }
  out_ += Printf(
      "<text x=\"%s\" y=\"%s\" font-size=\"%s\" text-anchor=\"%s\" fill=\"%s\"%s>%s</text>\n",
      x.c_str(), y.c_str(), Number(style.size).c_str(), kAnchors[static_cast<size_t>(style.anchor)],
      style.colour, more.c_str(), EscapeMarkup(text).c_str());
}

std::string Svg::Finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace hearth
