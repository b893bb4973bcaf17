// SPDX-License-Identifier: Apache-2.0
#include "app/open_accounts.h"

#include "platform/topology.h"

namespace hearth {
namespace {

// One client may hold half of it, which must be more than one body.
constexpr uint64_t kLeastBytes = uint64_t{16} << 20;

}  // namespace

Result<std::unique_ptr<Accounts>> OpenAccounts(uint64_t request_bytes) {
  if (request_bytes == 0) {
    return std::make_unique<Accounts>(Accounts::BudgetFor(ReadTopology().usable_memory_bytes()));
  }
  if (request_bytes < kLeastBytes) {
    return Error(Code::kInvalid, "--request-memory: expected at least 16 MiB, found %llu bytes",
                 static_cast<unsigned long long>(request_bytes));
  }
  return std::make_unique<Accounts>(static_cast<int64_t>(request_bytes));
}

}  // namespace hearth
