// SPDX-License-Identifier: Apache-2.0
// The picture of a running server, as lines of text. Pure: figures in, lines out.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "top/status.h"
namespace hearth {

struct TopView {
  int columns = 80;
  int rows = 24;  // 0: as many as it takes
  bool has_colours = false;
  bool has_blocks = true;           // the terminal shows block characters; else ASCII alone
  std::string where;                // the server's address
  std::span<const double> history;  // tokens per second of replies, the latest last
  std::string problem;              // why the figures are old; empty: they are not
  std::string footer;               // for the last row; empty: none
};

// Every line fits the columns. Nothing that the server said can command the terminal.
std::vector<std::string> DrawTop(const TopStatus& status, const TopView& view);

// The parts, for tests. Names as printable ASCII of at most `columns`; a cut one ends in '~'.
std::string PlainName(std::string_view name, size_t columns);
std::string ShortCount(int64_t count);  // "9,999", "123k", "1.2M"
std::string ShortBytes(int64_t bytes);
std::string ShortTime(double seconds);
// The last `columns` values against the largest of them.
std::string Sparkline(std::span<const double> values, size_t columns, bool has_blocks);

}  // namespace hearth
