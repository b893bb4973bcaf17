// SPDX-License-Identifier: Apache-2.0
#include "hub/progress.h"

#include <algorithm>

#include "base/result.h"
#include "store/inventory.h"

namespace hearth {
namespace {

constexpr double kWindow = 5;         // seconds that the rate is of
constexpr double kRedraw = 0.2;       // of a terminal: five times a second is smooth enough
constexpr double kLineInterval = 10;  // of a log: its longest silence
constexpr double kLineApart = 2;      // and its shortest

double Share(uint64_t bytes, uint64_t total) {
  return total == 0 ? 1.0 : static_cast<double>(bytes) / static_cast<double>(total);
}

}  // namespace

std::string HumanTime(double seconds) {
  const auto whole = static_cast<long long>(std::min(seconds, 1e9));
  if (whole < 60) return Printf("%lld s", whole);
  if (whole < 3600) return Printf("%lld:%02lld", whole / 60, whole % 60);
  return Printf("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

Progress::Progress(uint64_t total_bytes, bool is_terminal, int columns)
    : total_(total_bytes), is_terminal_(is_terminal), columns_(columns) {}

double Progress::rate() const {
  if (recent_.size() < 2) return 0;
  const auto& [first_time, first_bytes] = recent_.front();
  const auto& [last_time, last_bytes] = recent_.back();
  if (last_time <= first_time || last_bytes <= first_bytes) return 0;
  return static_cast<double>(last_bytes - first_bytes) / (last_time - first_time);
}

std::string Progress::Words(uint64_t bytes_here) const {
  std::string words = Printf("%3.0f %%  %s of %s", std::min(100.0, 100 * Share(bytes_here, total_)),
                             HumanBytes(bytes_here).c_str(), HumanBytes(total_).c_str());
  if (rate() <= 0) return words;
  words += Printf("  %s/s", HumanBytes(static_cast<uint64_t>(rate())).c_str());
  if (bytes_here < total_) {
    words += "  " + HumanTime(static_cast<double>(total_ - bytes_here) / rate()) + " left";
  }
  return words;
}

std::string Progress::Bar(uint64_t bytes_here) const {
  const std::string words = Words(bytes_here);
  const int width = std::min(30, columns_ - static_cast<int>(words.size()) - 4);
  if (width < 5)
    return "\r" + words.substr(0, static_cast<size_t>(std::max(1, columns_ - 1))) + "\x1b[K";
  const int filled = static_cast<int>(Share(bytes_here, total_) * width);
  return "\r[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(width - filled), ' ') + "] " + words + "\x1b[K";
}

std::optional<std::string> Progress::Update(double now, uint64_t bytes_here) {
  // A repair goes back: the rate begins anew.
  if (!recent_.empty() && bytes_here < recent_.back().second) recent_.clear();
  recent_.emplace_back(now, bytes_here);
  while (recent_.size() > 2 && recent_[1].first <= now - kWindow) recent_.pop_front();
  const int tenth = static_cast<int>(10 * Share(bytes_here, total_));
  const bool is_first = last_shown_ < 0;
  const double silence = now - last_shown_;
  const bool is_due =
      is_terminal_ ? silence >= kRedraw || bytes_here == total_
                   : silence >= kLineInterval || (tenth != last_tenth_ && silence >= kLineApart);
  if (!is_first && !is_due) return std::nullopt;
  // A log's first line is worth writing only once there is something to tell.
  if (is_first && !is_terminal_) {
    last_shown_ = now;
    return std::nullopt;
  }
  last_shown_ = now;
  last_tenth_ = tenth;
  return is_terminal_ ? Bar(bytes_here) : Words(bytes_here) + "\n";
}

}  // namespace hearth
