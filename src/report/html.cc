// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <utility>

#include "report/svg.h"

namespace hearth {
namespace {

constexpr const char* kStyle =
    "body{font:16px/1.5 system-ui,'Segoe UI','DejaVu Sans',sans-serif;color:#1c2733;"
    "background:#fff;max-width:860px;margin:32px auto;padding:0 20px}"
    "h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 8px}"
    "p{margin:6px 0;color:#3c4856}"
    "table{border-collapse:collapse;margin:12px 0;font-variant-numeric:tabular-nums}"
    "th,td{padding:5px 14px 5px 0;text-align:right;border-bottom:1px solid #e3e7eb}"
    "th{font-weight:600;color:#6b7785;font-size:14px}"
    "th:first-child,td:first-child{text-align:left}"
    "figure{margin:18px 0}figure svg{max-width:100%;height:auto;border:1px solid #e3e7eb;"
    "border-radius:6px}"
    "figcaption{font-size:14px;color:#6b7785}";

}  // namespace

HtmlPage::HtmlPage(std::string_view title) {
  const std::string escaped = EscapeMarkup(title);
  out_ =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      escaped + "</title>\n<style>" + kStyle + "</style>\n<h1>" + escaped + "</h1>\n";
}

void HtmlPage::Heading(std::string_view text) { out_ += "<h2>" + EscapeMarkup(text) + "</h2>\n"; }

void HtmlPage::Paragraph(std::string_view text) { out_ += "<p>" + EscapeMarkup(text) + "</p>\n"; }

void HtmlPage::Table(const std::vector<std::string>& header,
                     const std::vector<std::vector<std::string>>& rows) {
  out_ += "<table>\n<tr>";
  for (const std::string& cell : header) out_ += "<th>" + EscapeMarkup(cell) + "</th>";
  out_ += "</tr>\n";
  for (const std::vector<std::string>& row : rows) {
    out_ += "<tr>";
    for (const std::string& cell : row) out_ += "<td>" + EscapeMarkup(cell) + "</td>";
    out_ += "</tr>\n";
  }
  out_ += "</table>\n";
}

void HtmlPage::Figure(const std::string& svg, std::string_view caption) {
  out_ +=
      "<figure>\n" + svg + "<figcaption>" + EscapeMarkup(caption) + "</figcaption>\n</figure>\n";
}

std::string HtmlPage::Finish() && {
  out_ += "</html>\n";
  return std::move(out_);
}

}  // namespace hearth
