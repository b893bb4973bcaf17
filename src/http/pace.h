// SPDX-License-Identifier: Apache-2.0
// How slowly the other side may send or take bytes. Pure; internal to the room.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
namespace hearth {

// A moving deadline: so much time at first, then bytes buy more, but never more than `most` from
// now. Who was fast so far may not be slow for as long as it likes.
class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Pace(Time now, std::chrono::milliseconds first, std::chrono::milliseconds most, int bytes_per_s)
      : most_(most), bytes_per_s_(std::max(1, bytes_per_s)), deadline_(now + first) {}
  void Add(size_t bytes, Time now) {
    const auto bought =
        std::chrono::microseconds(static_cast<int64_t>(bytes) * 1'000'000 / bytes_per_s_);
    deadline_ = std::min<Time>(deadline_ + bought, std::max<Time>(deadline_, now + most_));
  }
  // Time that passed for another reason than the other side's.
  void Forgive(std::chrono::steady_clock::duration waited) { deadline_ += waited; }
  Time deadline() const { return deadline_; }

 private:
  const std::chrono::milliseconds most_;
  const int bytes_per_s_;
  Time deadline_;
};

}  // namespace hearth
