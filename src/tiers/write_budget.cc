// SPDX-License-Identifier: Apache-2.0
#include "tiers/write_budget.h"

#include <algorithm>

namespace hearth {
namespace {

// The blocks of a million tokens: more than memory remembers of what it evicted.
constexpr size_t kMaxRefused = 65'536;

}  // namespace

void WriteBudget::Refill(int64_t now_us) {
  if (filled_at_us_ >= 0 && now_us > filled_at_us_) {
    left_ += static_cast<double>(now_us - filled_at_us_) * 1e-6 * allowance_.bytes_per_s;
    left_ = std::min(left_, allowance_.burst_bytes);
  }
  filled_at_us_ = std::max(filled_at_us_, now_us);
}

void WriteBudget::Remember(uint64_t name) {
  if (!refused_.insert(name).second) return;
  refused_order_.push_back(name);
  if (refused_order_.size() > kMaxRefused) {
    refused_.erase(refused_order_.front());
    refused_order_.pop_front();
  }
}

bool WriteBudget::Take(uint64_t name, uint32_t tenant, int64_t bytes, int64_t now_us) {
  Refill(now_us);
  const bool is_plenty = left_ >= allowance_.burst_bytes / 2;
  const bool may = left_ > 0 && (is_plenty || (WasRefused(name) && tenants_.Has(tenant, now_us)));
  if (may) {
    left_ -= static_cast<double>(bytes);  // below nothing at most by one record
    tenants_.Spend(tenant, bytes, now_us);
  } else {
    Remember(name);
  }
  return may;
}

}  // namespace hearth
