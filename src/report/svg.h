// SPDX-License-Identifier: Apache-2.0
// A picture as text: shapes written down as SVG. Every string is escaped here and nowhere else.
#pragma once
#include <span>
#include <string>
#include <string_view>
namespace hearth {

// For text and attribute values of XML and HTML. Control characters, which XML forbids, become
// U+FFFD, and so do bytes that are not UTF-8.
std::string EscapeMarkup(std::string_view text);

struct Point {
  double x = 0, y = 0;
};

// Colours of the pictures, told apart in print and by colour-blind eyes.
inline constexpr const char* kInk = "#1c2733";
inline constexpr const char* kFaint = "#6b7785";
inline constexpr const char* kGrid = "#e3e7eb";
const char* SeriesColour(int index);

struct Stroke {
  const char* colour = kInk;
  double width = 1;
  bool dashed = false;
};
enum class Anchor : unsigned char { kStart, kMiddle, kEnd };
struct TextStyle {
  double size = 12;
  Anchor anchor = Anchor::kStart;
  const char* colour = kInk;
  bool bold = false;
  double turn = 0;    // degrees around its own point
  bool halo = false;  // a white rim, for text on lines
};

class Svg {
 public:
  // `title` is what a screen reader says.
  Svg(double width, double height, std::string_view title);
  void Line(Point from, Point to, const Stroke& stroke);
  void Path(std::span<const Point> points, const Stroke& stroke);
  void Circle(Point centre, double radius, const char* fill);
  void Rect(Point corner, double width, double height, const char* fill, double rounding = 0);
  void Text(Point at, std::string_view text, const TextStyle& style);
  // The whole element; nothing may be added afterwards.
  std::string Finish() &&;

 private:
  std::string out_;
};

}  // namespace hearth
