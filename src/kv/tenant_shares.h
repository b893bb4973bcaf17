// SPDX-License-Identifier: Apache-2.0
// Who has how much of a store that tenants share, and who had how much of what may be written to
// it. Pure: told what happened, asked with the time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
namespace hearth {

// Of what is shared, for one tenant while others want some: as much as all others together.
inline constexpr double kTenantShare = 0.5;

// Thread: one.
class TenantShares {
 public:
  explicit TenantShares(int64_t capacity_bytes, double share = kTenantShare)
      : most_bytes_(static_cast<int64_t>(share * static_cast<double>(capacity_bytes))) {}

  void Add(uint32_t tenant, int64_t bytes);
  void Remove(uint32_t tenant, int64_t bytes);
  int64_t bytes(uint32_t tenant) const;
  bool IsOver(uint32_t tenant) const { return bytes(tenant) > most_bytes_; }
  // Whether what is old of this tenant stays: another one has more than its share, and its own goes
  // instead.
  bool Spares(uint32_t tenant) const;
  size_t num_tenants() const { return bytes_.size(); }

 private:
  const int64_t most_bytes_;
  std::unordered_map<uint32_t, int64_t> bytes_;
  int num_over_ = 0;
};

// An allowance that every tenant has for itself, refilled over time. Thread: one.
class TenantBudget {
 public:
  // So many bytes at once after a quiet time, and as many in each period.
  TenantBudget(double bytes, int64_t period_us) : bytes_(bytes), period_us_(period_us) {}

  // Whether the tenant has some left. One that is alone always has: there is nobody to spare.
  bool Has(uint32_t tenant, int64_t now_us);
  void Spend(uint32_t tenant, int64_t bytes, int64_t now_us);
  bool is_bounded() const { return bytes_ > 0; }
  // Another size, the same shares of it; 0: there is no bound.
  void Resize(double bytes);

 private:
  struct Spent {
    double bytes = 0;
    int64_t at_us = 0;
  };
  double SpentBy(const Spent& spent, int64_t now_us) const;
  void DropIdle(int64_t now_us);

  double bytes_;
  const int64_t period_us_;
  std::unordered_map<uint32_t, Spent> spent_;  // of those that have less than all
};

}  // namespace hearth
