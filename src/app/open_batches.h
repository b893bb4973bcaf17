// SPDX-License-Identifier: Apache-2.0
// Files and batch jobs of `hearth serve`.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "batch/batch_office.h"
#include "engine/snapshot.h"
#include "server/observe/metrics.h"
#include "server/turns/dialect.h"
#include "server/turns/turn_service.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct BatchFlags {
  std::string path;  // a file, or a postgresql:// URL; empty: none
  int max_in_flight = 8;
  int lease_s = 30;

  bool is_remote() const { return IsPostgresUrl(path); }
};
void AddBatchOptions(CLI::App& sub, BatchFlags& flags);

// Null without a file.
Result<std::unique_ptr<BatchOffice>> OpenBatches(const BatchFlags& flags);
// Lines go the way of all requests. `service` and what `snapshot` asks outlive the office.
void StartBatches(BatchOffice& office, TurnService& service, const Dialects& dialects,
                  SnapshotSource snapshot);

void WatchBatches(const BatchOffice& office, ServerMetrics& metrics);

}  // namespace hearth
