// SPDX-License-Identifier: Apache-2.0
// How far a download is, in words: a bar that is redrawn on a terminal, a line now and then
// elsewhere.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
namespace hearth {

// Thread: one. Times are seconds on any clock that does not go back.
class Progress {
 public:
  // `columns` is the terminal's width.
  Progress(uint64_t total_bytes, bool is_terminal, int columns = 80);
  // What to print now, if anything: a terminal's line begins with a carriage return, others end
  // with a newline.
  std::optional<std::string> Update(double now, uint64_t bytes_here);
  // Bytes a second over the last seconds; 0 when nothing is known yet.
  double rate() const;

 private:
  std::string Words(uint64_t bytes_here) const;
  std::string Bar(uint64_t bytes_here) const;

  const uint64_t total_;
  const bool is_terminal_;
  const int columns_;
  std::deque<std::pair<double, uint64_t>> recent_;  // when there was how much
  double last_shown_ = -1;
  int last_tenth_ = 0;
};

// 7 s, 3:05, 2:00:00
std::string HumanTime(double seconds);

}  // namespace hearth
