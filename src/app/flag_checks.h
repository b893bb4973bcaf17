// SPDX-License-Identifier: Apache-2.0
// Checks of flags whose help and complaints read as sentences. CLI11's own call "abc" a number out
// of range, and print the values of an enum as raw bytes.
#pragma once
#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <type_traits>

#include "base/result.h"
namespace hearth {

// 0.1 or 1000000: never 1e+06, and no zeros at the end.
template <class T>
std::string PlainNumber(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    std::string text = Printf("%.6f", static_cast<double>(value));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text;
  }
}

template <class T>
CLI::Validator Between(T least, T most) {
  const std::string low = PlainNumber(least), high = PlainNumber(most);
  const std::string kind = std::is_integral_v<T> ? "a whole number" : "a number";
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        T value{};
        const bool is_number = CLI::detail::lexical_cast(text, value);
        if (is_number && value >= least && value <= most) return "";
        return "expected " + kind + " from " + low + " to " + high + ", found " + Quoted(text);
      },
      "[" + low + ".." + high + "]");
}

// One of the names, which becomes its value.
template <class T>
CLI::Validator NamedValue(const std::map<std::string, T>& values) {
  std::string names;
  for (const auto& [name, value] : values) names += (names.empty() ? "" : ",") + name;
  return CLI::Validator(
      [values, names](std::string& text) -> std::string {
        const auto found = values.find(text);
        if (found == values.end()) return "expected one of " + names + ", found " + Quoted(text);
        text = std::to_string(static_cast<int>(found->second));
        return "";
      },
      "{" + names + "}");
}

// YYYY-MM-DD.
inline CLI::Validator Date() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        bool is_date = text.size() == 10;
        for (size_t i = 0; is_date && i < text.size(); ++i) {
          const bool is_dash = i == 4 || i == 7;
          is_date = is_dash ? text[i] == '-' : text[i] >= '0' && text[i] <= '9';
        }
        if (is_date) {
          const std::string month = text.substr(5, 2), day = text.substr(8, 2);
          is_date = month >= "01" && month <= "12" && day >= "01" && day <= "31";
        }
        return is_date ? "" : "expected a date like 2026-01-31, found " + Quoted(text);
      },
      "");
}

// Bytes, with a unit if one is given. CLI11's own complaint lists thirty units.
inline CLI::Validator Size() {
  return CLI::Validator(
      [to_bytes = CLI::AsSizeValue(false)](std::string& text) -> std::string {
        const std::string given = text;
        // A unit alone would be taken for one of it.
        const bool has_number = !text.empty() && text[0] >= '0' && text[0] <= '9';
        try {
          if (has_number && to_bytes(text).empty()) return "";
        } catch (const CLI::ValidationError&) {  // its other way to say no
        }
        return "expected a size such as 512MiB or 4GiB, found " + Quoted(given);
      },
      "");
}

}  // namespace hearth
