// SPDX-License-Identifier: Apache-2.0
#include "app/server_memory.h"

#include <algorithm>

#include "grammar/grammar.h"
#include "platform/memory.h"
#include "platform/topology.h"
#include "server/access/account.h"

namespace hearth {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
// Of anonymous memory, a server with a vocabulary of 200,000 has 95 MiB beside its plan after some
// requests of every kind. Grammars that are kept may have 32 more (grammar/compiler.h), and as much
// again is for books.
constexpr int64_t kBase = 160 * kMib;
// The engine's, sockets', watchers, a tier's and batches'; 8 of them without those two.
constexpr int64_t kThreads = 16;
// Readers of two kinds and writers: half the cores each, from 2 to 8 (readers.cc, turn_service.cc).
constexpr int64_t kKinds = 3, kFewest = 2, kMost = 8;
// Grammars that are compiled at the same time, each on a stack of its own; one more without memory
// for it is asked to come again.
constexpr int64_t kCompilers = 2;

}  // namespace

int64_t ServerMemoryBytes(uint64_t request_bytes, int num_threads) {
  const Topology machine = ReadTopology();
  const int64_t requests = request_bytes > 0 ? static_cast<int64_t>(request_bytes)
                                             : Accounts::BudgetFor(machine.usable_memory_bytes());
  int64_t bytes = kBase + requests;
  if (HasAddressLimit()) {
    const int64_t compute = num_threads > 0 ? num_threads : machine.useful_threads();
    const int64_t each = std::clamp<int64_t>(machine.num_cpus / 2, kFewest, kMost);
    bytes += (kThreads + kKinds * each + compute) * ThreadStackBytes();
    bytes += kCompilers * static_cast<int64_t>(GrammarLimits().stack_bytes);
  }
  return bytes;
}

Status CheckServerFits(int64_t server_bytes, uint64_t usable_bytes) {
  if (static_cast<uint64_t>(server_bytes) < usable_bytes) return Status();
  return Error(
      Code::kExhausted,
      "not enough memory for a server: %.0f MiB are usable, and beside its models it needs "
      "%.0f MiB; raise the limit of the process or its cgroup, or lower --request-memory",
      static_cast<double>(usable_bytes) / kMib, static_cast<double>(server_bytes) / kMib);
}

}  // namespace hearth
