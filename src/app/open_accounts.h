// SPDX-License-Identifier: Apache-2.0
// What requests may hold, from a flag or from the machine.
#pragma once
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "server/access/account.h"
namespace hearth {

// 0: as much as the usable memory allows.
Result<std::unique_ptr<Accounts>> OpenAccounts(uint64_t request_bytes);

}  // namespace hearth
