// SPDX-License-Identifier: Apache-2.0
// How long a waiting thread looks at a word before it sleeps.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hearth {

inline int64_t SteadyNanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// A wake-up costs some 50 us, the serial work between two loops of a step some 5 us: a short wait
// is spun through. A long one means that the other thread lost its processor; then every spin takes
// time from a neighbour, from our own share, or from the cgroup's quota, so the next spins are
// shorter, and grow again once waits are short again.
// Thread: one at a time.
class SpinBudget {
 public:
  static constexpr int64_t kMost = 100'000, kLeast = 2'000;  // nanoseconds
  // 0: never spins.
  explicit SpinBudget(int64_t most = kMost) : most_(most), now_(most) {}

  // Spins until is_done() or until the time is up; whether it was done.
  template <class F>
  bool Spin(F&& is_done) {
    if (is_done()) return true;
    if (now_ == 0) return false;
    const int64_t start = SteadyNanoseconds();
    do {
      // The clock is read once in about 0.6 us.
      for (int i = 0; i < 16; ++i) {
        if (is_done()) {
          Learn(0);
          return true;
        }
        _mm_pause();
      }
    } while (SteadyNanoseconds() - start < now_);
    return false;
  }
  // How long the wait after a Spin that was not enough took in all.
  void Learn(int64_t nanoseconds) {
    const int64_t next = nanoseconds < most_ ? 2 * now_ : now_ / 2;
    now_ = std::clamp(next, std::min(kLeast, most_), most_);
  }
  int64_t now() const { return now_; }

 private:
  int64_t most_, now_;
};

}  // namespace hearth
