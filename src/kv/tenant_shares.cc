// SPDX-License-Identifier: Apache-2.0
#include "kv/tenant_shares.h"

#include <algorithm>

namespace hearth {
namespace {

// Beyond that those that have all of their allowance again are forgotten.
constexpr size_t kManyTenants = 1024;

}  // namespace

void TenantShares::Add(uint32_t tenant, int64_t bytes) {
  int64_t& of = bytes_[tenant];
  num_over_ -= of > most_bytes_;
  of += bytes;
  num_over_ += of > most_bytes_;
}

void TenantShares::Remove(uint32_t tenant, int64_t bytes) {
  const auto found = bytes_.find(tenant);
  if (found == bytes_.end()) return;
  num_over_ -= found->second > most_bytes_;
  found->second = std::max<int64_t>(0, found->second - bytes);
  num_over_ += found->second > most_bytes_;
  if (found->second == 0) bytes_.erase(found);
}

bool TenantShares::Spares(uint32_t tenant) const { return num_over_ > 0 && !IsOver(tenant); }

int64_t TenantShares::bytes(uint32_t tenant) const {
  const auto found = bytes_.find(tenant);
  return found == bytes_.end() ? 0 : found->second;
}

double TenantBudget::SpentBy(const Spent& spent, int64_t now_us) const {
  const auto since_us = static_cast<double>(std::max<int64_t>(0, now_us - spent.at_us));
  return std::max(0.0, spent.bytes - bytes_ * since_us / static_cast<double>(period_us_));
}

void TenantBudget::DropIdle(int64_t now_us) {
  std::erase_if(spent_, [&](const auto& each) { return SpentBy(each.second, now_us) <= 0; });
}

bool TenantBudget::Has(uint32_t tenant, int64_t now_us) {
  const auto found = spent_.find(tenant);
  if (found == spent_.end() || SpentBy(found->second, now_us) < bytes_) return true;
  DropIdle(now_us);
  return spent_.size() == 1;
}

// Debts end with the allowance: what somebody wrote while nobody else wanted anything is not held
// against it for long.
void TenantBudget::Spend(uint32_t tenant, int64_t bytes, int64_t now_us) {
  if (spent_.size() >= kManyTenants) DropIdle(now_us);
  Spent& spent = spent_[tenant];
  spent.bytes = std::min(SpentBy(spent, now_us) + static_cast<double>(bytes), 2 * bytes_);
  spent.at_us = std::max(spent.at_us, now_us);
}

void TenantBudget::Resize(double bytes) {
  if (bytes_ > 0) {
    for (auto& [tenant, spent] : spent_) spent.bytes *= bytes / bytes_;
  }
  bytes_ = bytes;
}

}  // namespace hearth
