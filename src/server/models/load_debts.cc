// SPDX-License-Identifier: Apache-2.0
#include "server/models/load_debts.h"

#include <algorithm>

namespace hearth {

int64_t LoadDebts::Debt::LeftUs(int64_t now_us) const {
  return std::max<int64_t>(0, us - (now_us - at_us) / kForgiven);
}

void LoadDebts::Charge(const std::string& client, int64_t us, int64_t most_us, int64_t now_us) {
  // Those that are forgiven, so that there are no more than were made in that time.
  std::erase_if(debts_, [&](const auto& each) {
    return each.first != client && each.second.LeftUs(now_us) == 0;
  });
  Debt& debt = debts_[client];
  const int64_t owed_us = debt.LeftUs(now_us);
  debt.us = std::max(owed_us, std::min(owed_us + us, most_us));
  debt.at_us = now_us;
}

int64_t LoadDebts::OwedUs(const std::string& client, int64_t now_us) const {
  const auto found = debts_.find(client);
  return found == debts_.end() ? 0 : found->second.LeftUs(now_us);
}

void LoadDebts::Serve(const std::string& client, int64_t now_us) {
  const auto found = debts_.find(client);
  if (found != debts_.end()) found->second.served_us = now_us;
}

int64_t LoadDebts::ServedUs(const std::string& client, int64_t now_us) const {
  const auto found = debts_.find(client);
  if (found == debts_.end() || found->second.LeftUs(now_us) == 0) return -1;
  return found->second.served_us;
}

}  // namespace hearth
