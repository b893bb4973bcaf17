// SPDX-License-Identifier: Apache-2.0
// What clients' requests hold and use, for operators: sums only, no client is named.
#pragma once
#include "base/json.h"
#include "server/access/account.h"
#include "server/observe/metric_families.h"
namespace hearth {

void AddAccounts(const AccountCounts& counts, MetricFamilies& out);
Json AccountsAsJson(const AccountCounts& counts);

}  // namespace hearth
