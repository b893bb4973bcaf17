// SPDX-License-Identifier: Apache-2.0
// A page that stands alone: no script, no font and no picture from elsewhere.
#pragma once
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);
  void Heading(std::string_view text);
  void Paragraph(std::string_view text);
  // The first column is text, the others are numbers, aligned right.
  void Table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows);
  // `svg` as DrawPlot and its like return it; taken as it is.
  void Figure(const std::string& svg, std::string_view caption);
  std::string Finish() &&;

 private:
  std::string out_;
};

}  // namespace hearth
