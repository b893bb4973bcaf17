// SPDX-License-Identifier: Apache-2.0
#include "top/view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/result.h"

namespace hearth {
namespace {

enum class Ink : unsigned char { kPlain, kBold, kDim, kGood, kWarn, kBad, kFull, kHalf };

const char* CodeOf(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kDim:
      return "\x1b[2m";
    case Ink::kGood:
      return "\x1b[32m";
    case Ink::kWarn:
      return "\x1b[33m";
    case Ink::kBad:
      return "\x1b[1;31m";
    case Ink::kFull:
      return "\x1b[36m";
    case Ink::kHalf:
      return "\x1b[2;36m";
    case Ink::kPlain:
      break;
  }
  return "";
}

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// One line: text in inks, cut where the terminal ends. Every character takes one cell: what the
// server said comes through PlainName, the rest is ours.
class Line {
 public:
  explicit Line(const TopView& view) : view_(view) {}
  Line& Add(std::string_view text, Ink ink = Ink::kPlain) {
    const bool inked = view_.has_colours && ink != Ink::kPlain;
    if (inked) out_ += CodeOf(ink);
    for (size_t i = 0; i < text.size(); ++i) {
      if (BeginsCharacter(text[i]) && ++width_ > view_.columns) {
        width_ = view_.columns;
        is_full_ = true;
      }
      if (!is_full_) out_ += text[i];
    }
    if (inked) out_ += "\x1b[0m";
    return *this;
  }
  // Blanks up to that column.
  Line& To(int column) {
    return Add(std::string(static_cast<size_t>(std::max(0, column - width_)), ' '));
  }
  int width() const { return width_; }
  std::string Take() { return std::move(out_); }

 private:
  const TopView& view_;
  std::string out_;
  int width_ = 0;
  bool is_full_ = false;
};

std::string Commas(int64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string Right(std::string text, size_t columns) {
  return text.size() >= columns ? text : std::string(columns - text.size(), ' ') + text;
}

// A rate or a time with as many digits as it deserves.
std::string Figure(double value) { return Printf(value < 99.95 ? "%.1f" : "%.0f", value); }

std::string Percent(int64_t part, int64_t whole) {
  if (whole <= 0) return "-";
  return Printf("%.0f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

constexpr int kValueColumn = 11, kBarColumn = 34, kBarWidth = 20;

void AddBar(Line& line, const TopView& view, int64_t full, int64_t half, int64_t whole) {
  const auto cells = [&](int64_t part) -> int64_t {
    if (whole <= 0 || part <= 0) return 0;
    // What is there at all is seen.
    const auto exact = static_cast<double>(part) / static_cast<double>(whole) * kBarWidth;
    return std::clamp<int64_t>(std::llround(exact), 1, kBarWidth);
  };
  const int64_t num_full = cells(full);
  const int64_t num_half = std::min(cells(half), kBarWidth - num_full);
  const auto add = [&](int64_t count, const char* block, const char* plain, Ink ink) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += view.has_blocks ? block : plain;
    if (count > 0) line.Add(text, ink);
  };
  add(num_full, "█", "#", Ink::kFull);
  add(num_half, "▒", "+", Ink::kHalf);
  add(kBarWidth - num_full - num_half, "░", ".", Ink::kDim);
}

Line Labelled(const TopView& view, std::string_view label) {
  Line line(view);
  line.Add(" ").Add(label, Ink::kDim).To(kValueColumn);
  return line;
}

std::string DrawHead(const TopStatus& s, const TopView& view) {
  Line line(view);
  const Ink state = s.state == "ready" ? Ink::kGood : s.state == "stalled" ? Ink::kBad : Ink::kWarn;
  line.Add(" ").Add(PlainName(s.model, 28), Ink::kBold).Add("  ");
  line.Add(PlainName(s.state, 12), state);
  const std::string where = PlainName(view.where, 40) + "  up " + ShortTime(s.uptime_s) + " ";
  line.To(std::max(line.width() + 2, view.columns - static_cast<int>(where.size())));
  return line.Add(where, Ink::kDim).Take();
}

std::string DrawReplies(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "replies");
  line.Add(Right(Figure(s.decode_per_s), 6), Ink::kBold).Add(" tokens/s").To(kBarColumn);
  const auto room = static_cast<size_t>(std::clamp(view.columns - kBarColumn - 1, 0, 60));
  return line.Add(Sparkline(view.history, room, view.has_blocks), Ink::kFull).Take();
}

std::string DrawPrompts(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "prompts");
  line.Add(Right(Figure(s.prefill_per_s), 6), Ink::kBold).Add(" tokens/s").To(kBarColumn);
  if (s.prompt_tokens == 0) return line.Take();
  return line.Add(Percent(s.cached_tokens, s.prompt_tokens) + " found in the cache").Take();
}

std::string DrawSteps(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "step");
  line.Add(Right(Figure(s.step_ms), 6), Ink::kBold)
      .Add(" ms, " + Figure(s.step_tokens) + " tokens")
      .To(kBarColumn);
  line.Add("p50 " + Figure(s.step_p50_ms) + "  p99 " + Figure(s.step_p99_ms) + "  target " +
           Figure(s.itl_target_ms) + " ms");
  if (s.step_failures > 0) line.Add("  " + Commas(s.step_failures) + " failed", Ink::kBad);
  return line.Take();
}

std::string DrawRunning(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "running");
  line.Add(Right(Commas(s.running), 6), Ink::kBold)
      .Add(" of " + Commas(s.max_running))
      .To(kBarColumn);
  AddBar(line, view, s.running - std::min(s.paused, s.running), s.paused, s.max_running);
  if (s.paused > 0) line.Add("  " + Commas(s.paused) + " paused", Ink::kWarn);
  return line.Take();
}

std::string DrawWaiting(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "waiting");
  line.Add(Right(Commas(s.waiting), 6), Ink::kBold)
      .Add(" of " + Commas(s.max_waiting))
      .To(kBarColumn);
  AddBar(line, view, s.waiting, 0, s.max_waiting);
  if (s.waiting > 0) line.Add("  " + ShortCount(s.waiting_tokens) + " tokens");
  if (s.preempted > 0) line.Add("  " + Commas(s.preempted) + " preempted", Ink::kWarn);
  return line.Take();
}

std::string DrawBlocks(const TopBlocks& kv, const TopView& view) {
  Line line = Labelled(view, "KV " + PlainName(kv.group, 6));
  const std::string held = ShortBytes(kv.held * kv.block_bytes);
  line.Add(Right(held, 10), Ink::kBold)
      .Add(" of " + ShortBytes(kv.total * kv.block_bytes))
      .To(kBarColumn);
  AddBar(line, view, kv.held, kv.cached, kv.total);
  line.Add("  " + Percent(kv.held, kv.total) + " held");
  if (kv.cached > 0) line.Add(", " + Percent(kv.cached, kv.total) + " cached", Ink::kDim);
  return line.Take();
}

std::string DrawTier(const TopTier& tier, const TopView& view) {
  Line line = Labelled(view, "KV " + PlainName(tier.name, 6));
  if (tier.capacity_bytes > 0) {  // else others decide how much it is
    line.Add(Right(ShortBytes(tier.used_bytes), 10), Ink::kBold)
        .Add(" of " + ShortBytes(tier.capacity_bytes))
        .To(kBarColumn);
    AddBar(line, view, 0, tier.used_bytes, tier.capacity_bytes);
  }
  // First: a narrow screen cuts the end of the line off.
  if (tier.errors > 0) line.Add("  " + ShortCount(tier.errors) + " errors,", Ink::kWarn);
  line.Add(tier.errors > 0 ? " " : "  ")
      .Add(ShortCount(tier.hits) + " hits, " + ShortCount(tier.misses) + " misses");
  if (tier.late > 0) line.Add(", " + ShortCount(tier.late) + " late", Ink::kWarn);
  if (tier.slower > 0) line.Add(", " + ShortCount(tier.slower) + " slower", Ink::kDim);
  return line.Take();
}

std::string DrawExtras(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "drafts");
  if (s.drafted == 0) line.Add(Right("none", 6));
  if (s.drafted > 0) {
    line.Add(Right(Percent(s.accepted, s.drafted), 8), Ink::kBold).Add(" accepted");
  }
  line.To(kBarColumn).Add("masks ", Ink::kDim);
  if (s.mask_steps == 0) return line.Add("none").Take();
  line.Add(ShortCount(s.mask_steps) + " steps, ");
  line.Add(ShortCount(s.mask_waits) + " waited", s.mask_waits > 0 ? Ink::kWarn : Ink::kPlain);
  return line.Take();
}

std::string DrawProcess(const TopStatus& s, const TopView& view) {
  Line line = Labelled(view, "memory");
  line.Add(Right(ShortBytes(s.resident_bytes), 10), Ink::kBold).Add(" resident").To(kBarColumn);
  line.Add(Commas(s.connections) + (s.connections == 1 ? " connection" : " connections"));
  if (s.preemptions > 0) line.Add(", " + ShortCount(s.preemptions) + " preemptions");
  return line.Take();
}

std::string DrawEnds(const TopStatus& s, const TopView& view) {
  int64_t good = 0;
  std::vector<TopEnds> bad;
  for (const TopEnds& end : s.ends) {
    if (end.status < 400) good += end.count;
    if (end.status >= 400) bad.push_back(end);
  }
  std::sort(bad.begin(), bad.end(),
            [](const TopEnds& a, const TopEnds& b) { return a.count > b.count; });
  Line line = Labelled(view, "answered");
  line.Add(Right(ShortCount(good), 6), Ink::kBold).Add(" succeeded").To(kBarColumn);
  if (bad.empty() && s.refusals == 0) return line.Add("no errors").Take();
  const char* between = "";
  for (const TopEnds& end : bad) {
    const std::string code =
        end.code.empty() ? std::to_string(end.status) : PlainName(end.code, 24);
    line.Add(between).Add(ShortCount(end.count) + " " + code,
                          end.status >= 500 ? Ink::kBad : Ink::kWarn);
    between = ", ";
  }
  if (s.refusals > 0) line.Add(between).Add(ShortCount(s.refusals) + " rejected", Ink::kWarn);
  return line.Take();
}

// The table of sequences. An id is shown whole where there is room.
int IdWidth(const TopView& view) { return view.columns >= 92 ? 24 : 12; }

std::string DrawTableHead(const TopView& view) {
  Line line(view);
  std::string id = "REQUEST";
  id.resize(static_cast<size_t>(IdWidth(view)), ' ');
  return line
      .Add(" " + id + "  KEY           STATE           AGE  PROMPT  CACHED    SAID  TOK/S",
           Ink::kDim)
      .Take();
}

Ink InkOf(const std::string& state) {
  if (state == "decode") return Ink::kGood;
  if (state == "prefill") return Ink::kFull;
  return state == "waiting" ? Ink::kDim : Ink::kWarn;
}

std::string DrawSequence(const TopSequence& row, const TopView& view) {
  Line line(view);
  const int id = IdWidth(view), key = id + 3, state = key + 14;
  line.Add(" ").Add(
      PlainName(row.request_id.empty() ? "-" : row.request_id, static_cast<size_t>(id)));
  line.To(key).Add(PlainName(row.key.empty() ? "-" : row.key, 12));
  std::string words = PlainName(row.state, 10);
  if (row.state == "prefill") {
    words += " " + Percent(std::min(row.computed, row.prompt), row.prompt);
  } else if (row.state == "waiting" && row.priority != "normal") {
    words += " " + PlainName(row.priority, 6);
  }
  line.To(state).Add(words, InkOf(row.state)).To(state + 13);
  line.Add(Right(ShortTime(row.age_s), 6));
  line.Add(Right(ShortCount(row.prompt), 8));
  line.Add(Right(ShortCount(row.cached), 8));
  line.Add(Right(ShortCount(row.generated), 8));
  line.Add(Right(row.generated > 1 ? Figure(row.tokens_per_s) : "-", 7));
  return line.Take();
}

void DrawTable(const TopStatus& s, const TopView& view, size_t room,
               std::vector<std::string>& out) {
  if (s.sequences.empty() || room < 3) return;
  out.emplace_back();
  out.push_back(DrawTableHead(view));
  room -= 2;
  const size_t all = s.sequences.size();
  const size_t shown = all <= room ? all : room - 1;
  for (size_t i = 0; i < shown; ++i) out.push_back(DrawSequence(s.sequences[i], view));
  // The server tells only the first that wait.
  const auto told = static_cast<int64_t>(shown);
  const int64_t more = std::max<int64_t>(s.running + s.waiting, static_cast<int64_t>(all)) - told;
  if (more > 0 && shown < room) {
    out.push_back(Line(view).Add(" and " + Commas(more) + " more", Ink::kDim).Take());
  }
}

}  // namespace

std::string PlainName(std::string_view name, size_t columns) {
  std::string out;
  for (const char c : name) {
    if (!BeginsCharacter(c)) continue;
    out += c >= ' ' && c < 0x7f ? c : '?';
    if (out.size() <= columns) continue;
    out.resize(columns);
    if (columns > 0) out.back() = '~';
    break;
  }
  return out;
}

std::string ShortCount(int64_t count) {
  const auto value = static_cast<double>(count);
  if (count < 10'000) return Commas(count);
  if (value < 999'500) return Printf("%.0fk", value / 1e3);
  if (value < 999.5e6) return Printf(value < 9.95e6 ? "%.1fM" : "%.0fM", value / 1e6);
  return Printf("%.3gG", value / 1e9);
}

std::string ShortBytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1023.5 * 1024) return Printf("%.0f KiB", value / 0x1p10);
  if (value < 1023.5 * 0x1p20) return Printf("%.0f MiB", value / 0x1p20);
  return Printf(value < 99.95 * 0x1p30 ? "%.1f GiB" : "%.0f GiB", value / 0x1p30);
}

std::string ShortTime(double seconds) {
  if (seconds < 9.95) return Printf("%.1f s", seconds);
  if (seconds < 99.5) return Printf("%.0f s", seconds);
  if (seconds < 99.5 * 60) return Printf("%.0f m", seconds / 60);
  if (seconds < 99.5 * 3600) return Printf("%.0f h", seconds / 3600);
  return Printf("%.0f d", seconds / 86400);
}

std::string Sparkline(std::span<const double> values, size_t columns, bool has_blocks) {
  static constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                         "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 9> kAscii = {" ", ".", ".", ":", "-",
                                                        "=", "+", "*", "#"};
  values = values.last(std::min(columns, values.size()));
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string out;
  for (const double value : values) {
    const double share = most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0;
    // What is there at all is seen.
    const auto level = static_cast<size_t>(std::ceil(share * 8));
    out += (has_blocks ? kBlocks : kAscii)[level];
  }
  return out;
}

std::vector<std::string> DrawTop(const TopStatus& status, const TopView& view) {
  std::vector<std::string> out;
  out.push_back(DrawHead(status, view));
  if (view.problem.empty()) {
    out.emplace_back();
  } else {
    out.push_back(Line(view).Add(" " + PlainName(view.problem, 200), Ink::kBad).Take());
  }
  out.push_back(DrawReplies(status, view));
  out.push_back(DrawPrompts(status, view));
  out.push_back(DrawSteps(status, view));
  out.push_back(DrawRunning(status, view));
  out.push_back(DrawWaiting(status, view));
  for (const TopBlocks& kv : status.kv) {
    if (kv.total > 0) out.push_back(DrawBlocks(kv, view));
  }
  for (const TopTier& tier : status.tiers) out.push_back(DrawTier(tier, view));
  out.push_back(DrawExtras(status, view));
  out.push_back(DrawProcess(status, view));
  out.push_back(DrawEnds(status, view));
  const bool has_footer = !view.footer.empty();
  const size_t rows = view.rows > 0 ? static_cast<size_t>(view.rows) : 4096;
  const size_t room = rows - std::min(rows, out.size() + (has_footer ? 1 : 0));
  DrawTable(status, view, room, out);
  if (out.size() > rows) out.resize(rows);
  if (has_footer && view.rows > 1) {
    out.resize(rows - 1);
    out.push_back(Line(view).Add(" " + PlainName(view.footer, 200), Ink::kDim).Take());
  }
  return out;
}

}  // namespace hearth
