// SPDX-License-Identifier: Apache-2.0
// How much may be written to a disk that wears: a rate, with a store for busy hours. Pure: asked
// with the time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>
namespace hearth {

struct WriteAllowance {
  double bytes_per_s = 8 << 20;          // in the long run
  double burst_bytes = 2.0 * (1 << 30);  // at once, after a quiet time
};

// Thread: one.
class WriteBudget {
 public:
  explicit WriteBudget(const WriteAllowance& allowance)
      : allowance_(allowance), left_(allowance.burst_bytes) {}

  // Whether to write this now; yes is spent. While there is plenty everything is written. In the
  // lower half of the budget only what is offered for the second time: it was wanted again, and
  // what is wanted once usually stays so.
  bool Take(uint64_t name, int64_t bytes, int64_t now_us);

 private:
  void Refill(int64_t now_us);
  bool WasRefused(uint64_t name) const { return refused_.contains(name); }
  void Remember(uint64_t name);

  const WriteAllowance allowance_;
  double left_;
  int64_t filled_at_us_ = -1;
  std::unordered_set<uint64_t> refused_;
  std::deque<uint64_t> refused_order_;
};

}  // namespace hearth
