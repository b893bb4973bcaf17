// SPDX-License-Identifier: Apache-2.0
#include "app/open_batches.h"

#include <CLI/CLI.hpp>
#include <utility>
#include <variant>

#include "app/flag_checks.h"
#include "base/check.h"
#include "http/router.h"

namespace hearth {

void AddBatchOptions(CLI::App& sub, BatchFlags& flags) {
  sub.add_option("--batches", flags.path,
                 "File for uploaded files and batch jobs, created if missing; default: none, and "
                 "/v1/files and /v1/batches are refused");
  sub.add_option("--batch-concurrency", flags.max_in_flight,
                 "Maximum number of batch lines running at a time; they give way to all other "
                 "requests")
      ->check(Between(1, 256))
      ->capture_default_str();
}

Result<std::unique_ptr<BatchOffice>> OpenBatches(const BatchFlags& flags) {
  if (flags.path.empty()) return std::unique_ptr<BatchOffice>();
  HEARTH_ASSIGN(std::unique_ptr<BatchStore> store, BatchStore::Open(flags.path));
  BatchOptions options;
  options.max_in_flight = flags.max_in_flight;
  return std::make_unique<BatchOffice>(std::move(store), options);
}

void StartBatches(BatchOffice& office, TurnService& service, const Dialects& dialects) {
  auto router = std::make_shared<Router>();
  for (const auto& dialect : dialects) service.AddRoutes(*router, dialect);
  office.Start([router](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const auto found = router->Find(request.method, request.path);
    const auto* match = std::get_if<Router::Match>(&found);
    HEARTH_CHECK(match != nullptr);  // endpoints are checked when a batch is made
    match->route->handler(std::move(request), std::move(reply));
  });
}

}  // namespace hearth
