// SPDX-License-Identifier: Apache-2.0
#include "app/open_batches.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "app/flag_checks.h"
#include "base/check.h"
#include "http/router.h"

namespace hearth {

void AddBatchOptions(CLI::App& sub, BatchFlags& flags) {
  sub.add_option("--batches", flags.path,
                 "File for uploaded files and batch jobs, created if missing, or a postgresql:// "
                 "URL that several replicas share; default: none, and /v1/files and /v1/batches "
                 "are refused")
      ->option_text("FILE|URL");
  sub.add_option("--batch-concurrency", flags.max_in_flight,
                 "Maximum number of batch lines running at a time; they give way to all other "
                 "requests")
      ->check(Between(1, 256))
      ->capture_default_str();
  sub.add_option(
         "--batch-lease", flags.lease_s,
         "Time after which other replicas run the batch lines of one that died, in seconds; "
         "with a postgresql:// URL")
      ->check(Between(2, 3600))
      ->capture_default_str();
}

Result<std::unique_ptr<BatchOffice>> OpenBatches(const BatchFlags& flags) {
  if (flags.path.empty()) return std::unique_ptr<BatchOffice>();
  BatchQuota quota;
  quota.claim_s = flags.lease_s;
  HEARTH_ASSIGN(std::unique_ptr<BatchStore> store, BatchStore::Open(flags.path, quota));
  BatchOptions options;
  options.renew_every = std::chrono::milliseconds(flags.lease_s * 1000 / 3);
  options.max_in_flight = flags.max_in_flight;
  std::unique_ptr<BatchStore> runners;
  if (flags.is_remote()) {
    HEARTH_ASSIGN(runners, BatchStore::Open(flags.path, quota));
  }
  return std::make_unique<BatchOffice>(std::move(store), options, std::move(runners));
}

void StartBatches(BatchOffice& office, TurnService& service, const Dialects& dialects,
                  SnapshotSource snapshot) {
  auto router = std::make_shared<Router>();
  for (const auto& dialect : dialects) service.AddRoutes(*router, dialect);
  const auto send = [router](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const auto found = router->Find(request.method, request.path);
    const auto* match = std::get_if<Router::Match>(&found);
    HEARTH_CHECK(match != nullptr);  // endpoints are checked when a batch is made
    match->route->handler(std::move(request), std::move(reply));
  };
  office.Start(send, [snapshot = std::move(snapshot)] {
    return std::ranges::any_of(snapshot()->rows, [](const SequenceRow& row) {
      return row.priority != Priority::kIdle;  // a line's
    });
  });
}

void WatchBatches(const BatchOffice& office, ServerMetrics& metrics) {
  metrics.WatchBatches([&office] {
    const BatchRunner::Counts from = office.counts();
    BatchCounts counts;
    counts.jobs = from.store.jobs;
    counts.running = from.running;
    counts.waiting = std::max<int64_t>(0, from.store.unanswered - from.running);
    counts.completed = from.completed;
    counts.failed = from.failed;
    counts.is_held = from.is_held;
    return counts;
  });
}

}  // namespace hearth
