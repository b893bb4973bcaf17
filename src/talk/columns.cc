// SPDX-License-Identifier: Apache-2.0
#include "talk/columns.h"

#include <langinfo.h>

#include <algorithm>
#include <clocale>
#include <cwchar>

#include "base/utf8.h"

namespace hearth {
namespace {

// The code point at the front and its width; bytes that are no UTF-8 take one column each.
struct Cell {
  size_t num_bytes = 1;
  int columns = 1;
};
Cell CellAt(std::string_view text) {
  const Utf8Char c = DecodeUtf8(text.data(), text.data() + text.size());
  if (c.num_bytes == 0) return {};
  const int width = wcwidth(static_cast<wchar_t>(c.code_point));
  return {static_cast<size_t>(c.num_bytes), std::max(width, 0)};
}

}  // namespace

void UseUtf8() {
  const bool has_locale = std::setlocale(LC_CTYPE, "") != nullptr;
  if (has_locale && std::string_view(nl_langinfo(CODESET)) == "UTF-8") return;
  std::setlocale(LC_CTYPE, "C.UTF-8");
}

int ColumnsOf(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Cell cell = CellAt(text);
    columns += cell.columns;
    text.remove_prefix(cell.num_bytes);
  }
  return columns;
}

std::string LastColumns(std::string_view text, int columns) {
  int width = ColumnsOf(text);
  while (width > columns && !text.empty()) {
    const Cell cell = CellAt(text);
    width -= cell.columns;
    text.remove_prefix(cell.num_bytes);
  }
  return std::string(text);
}

}  // namespace hearth
