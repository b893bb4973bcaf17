// SPDX-License-Identifier: Apache-2.0
#include "talk/settings.h"

#include <charconv>
#include <functional>
#include <vector>

namespace hearth {
namespace {

template <class T>
Result<T> NumberBetween(std::string_view text, T least, T most) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // A NaN is not at least anything.
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  return Error(Code::kInvalid, "expected a number from %g to %g, found %s",
               static_cast<double>(least), static_cast<double>(most), Quoted(text).c_str());
}

template <class T>
Status SetOptional(std::string_view text, T least, T most, std::optional<T>& out) {
  if (text == "default") {
    out.reset();
    return Status();
  }
  HEARTH_ASSIGN(out, NumberBetween(text, least, most));
  return Status();
}

Status SetEffort(std::string_view text, std::optional<ReasoningEffort>& out) {
  if (text == "default") {
    out.reset();
    return Status();
  }
  HEARTH_ASSIGN(out, EffortOf(text));
  return Status();
}

Status SetReasoning(std::string_view text, ReasoningView& out) {
  HEARTH_ASSIGN(out, ReasoningViewOf(text == "default" ? "fold" : text));
  return Status();
}

std::string Shown(const std::optional<double>& value) {
  return value ? Printf("%g", *value) : "default";
}

struct Setting {
  const char* name;
  std::function<Status(std::string_view, TalkSettings&)> set;
  std::function<std::string(const TalkSettings&)> show;
};

const std::vector<Setting>& Settings() {
  using View = std::string_view;
  using All = TalkSettings;
  static const std::vector<Setting> rows = {
      {"temperature", [](View v, All& s) { return SetOptional(v, 0.0, 10.0, s.temperature); },
       [](const All& s) { return Shown(s.temperature); }},
      {"top-p", [](View v, All& s) { return SetOptional(v, 0.0, 1.0, s.top_p); },
       [](const All& s) { return Shown(s.top_p); }},
      {"min-p", [](View v, All& s) { return SetOptional(v, 0.0, 1.0, s.min_p); },
       [](const All& s) { return Shown(s.min_p); }},
      {"top-k", [](View v, All& s) { return SetOptional(v, 0, 1 << 24, s.top_k); },
       [](const All& s) { return s.top_k ? std::to_string(*s.top_k) : "default"; }},
      {"seed",
       [](View v, All& s) { return SetOptional(v, uint64_t{0}, uint64_t{1} << 62, s.seed); },
       [](const All& s) { return s.seed ? std::to_string(*s.seed) : "default"; }},
      {"max-tokens", [](View v, All& s) { return SetOptional(v, 0, 1 << 20, s.max_tokens); },
       [](const All& s) { return s.max_tokens ? std::to_string(*s.max_tokens) : "default"; }},
      {"effort", [](View v, All& s) { return SetEffort(v, s.effort); },
       [](const All& s) { return std::string(s.effort ? NameOf(*s.effort) : "default"); }},
      {"reasoning", [](View v, All& s) { return SetReasoning(v, s.reasoning); },
       [](const All& s) { return std::string(NameOf(s.reasoning)); }},
  };
  return rows;
}

}  // namespace

Status SetSetting(std::string_view name, std::string_view value, TalkSettings& settings) {
  std::string names;
  for (const Setting& row : Settings()) {
    if (name == row.name) return row.set(value, settings).Within(name);
    names += std::string(names.empty() ? "" : ", ") + row.name;
  }
  return Error(Code::kInvalid, "unknown setting %s; there are: %s", Quoted(name).c_str(),
               names.c_str());
}

std::string ListSettings(const TalkSettings& settings) {
  std::string out;
  for (const Setting& row : Settings()) {
    out += Printf("%-12s %s\n", row.name, row.show(settings).c_str());
  }
  return out;
}

Result<ReasoningView> ReasoningViewOf(std::string_view word) {
  for (const auto view : {ReasoningView::kShow, ReasoningView::kFold, ReasoningView::kHide}) {
    if (word == NameOf(view)) return view;
  }
  return Error(Code::kInvalid, "expected show, fold or hide, found %s", Quoted(word).c_str());
}

Result<ReasoningEffort> EffortOf(std::string_view word) {
  for (const auto effort :
       {ReasoningEffort::kLow, ReasoningEffort::kMedium, ReasoningEffort::kHigh}) {
    if (word == NameOf(effort)) return effort;
  }
  return Error(Code::kInvalid, "expected low, medium or high, found %s", Quoted(word).c_str());
}

const char* NameOf(ReasoningView view) {
  switch (view) {
    case ReasoningView::kShow:
      return "show";
    case ReasoningView::kFold:
      return "fold";
    case ReasoningView::kHide:
      break;
  }
  return "hide";
}

const char* NameOf(ReasoningEffort effort) {
  switch (effort) {
    case ReasoningEffort::kLow:
      return "low";
    case ReasoningEffort::kMedium:
      return "medium";
    case ReasoningEffort::kHigh:
      break;
  }
  return "high";
}

}  // namespace hearth
