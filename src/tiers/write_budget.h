// SPDX-License-Identifier: Apache-2.0
// How much may be written to a disk that wears: a rate, with a store for busy hours. Pure: asked
// with the time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

#include "kv/tenant_shares.h"
namespace hearth {

struct WriteAllowance {
  double bytes_per_s = 8 << 20;          // in the long run
  double burst_bytes = 2.0 * (1 << 30);  // at once, after a quiet time
};

// Thread: one.
class WriteBudget {
 public:
  explicit WriteBudget(const WriteAllowance& allowance)
      : allowance_(allowance),
        left_(allowance.burst_bytes),
        tenants_(kTenantShare * allowance.burst_bytes, PeriodUs(allowance)) {}

  // Whether to write this now; yes is spent. While there is plenty everything is written. In the
  // lower half of the budget only what is offered for the second time: it was wanted again, and
  // what is wanted once usually stays so; and a tenant that had its share waits for the others.
  bool Take(uint64_t name, uint32_t tenant, int64_t bytes, int64_t now_us);
  // Written already, whether there was an allowance for it or not.
  void Spend(int64_t bytes) { left_ -= static_cast<double>(bytes); }

 private:
  static int64_t PeriodUs(const WriteAllowance& allowance) {
    const double seconds = allowance.burst_bytes / (allowance.bytes_per_s + 1e-3);
    return static_cast<int64_t>(1e6 * (seconds < 1e6 ? seconds : 1e6)) + 1;
  }
  void Refill(int64_t now_us);
  bool WasRefused(uint64_t name) const { return refused_.contains(name); }
  void Remember(uint64_t name);

  const WriteAllowance allowance_;
  double left_;
  int64_t filled_at_us_ = -1;
  std::unordered_set<uint64_t> refused_;
  std::deque<uint64_t> refused_order_;
  TenantBudget tenants_;
};

}  // namespace hearth
