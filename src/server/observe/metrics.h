// SPDX-License-Identifier: Apache-2.0
// What Prometheus reads: times of requests as histograms, the engine's numbers as counters and
// gauges, under our names and, for dashboards and balancers that know them, under vLLM's.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "http/http_server.h"
#include "http/router.h"
#include "server/access/account.h"
#include "server/access/rate_limiter.h"
#include "server/models/model_host.h"
#include "server/observe/fleet_families.h"
#include "server/observe/paging_families.h"
#include "server/observe/worker_facts.h"
#include "server/turns/exchange.h"
#include "server/turns/response_store.h"
namespace hearth {

// What does not change while the process runs.
struct MetricFacts {
  std::string version, isa;  // ours, and the instruction set the kernels were chosen for
  std::string numerics;      // which arithmetic: equal words, equal bits (docs/numerics.md)
  std::string model;         // several: a word for all of them
  int max_context = 0;       // 0: several models, each with its own
  WorkerFacts worker = {};
};

// Thread: any.
class ServerMetrics {
 public:
  explicit ServerMetrics(MetricFacts facts);
  ~ServerMetrics();

  // A sink that measures what passes through it. Every request's goes through here.
  std::shared_ptr<EventSink> Watch(std::shared_ptr<EventSink> sink);

  // `counts` is asked at every scrape until Forget, which must come before what it looks at goes.
  void AddListener(std::string name, std::function<HttpCounts()> counts);
  // The same for stored responses.
  void WatchStore(std::function<StoreCounts()> counts);
  // The same for models that come and go.
  void WatchModels(std::function<HostCounts()> counts);
  // The same for lines of the log that nobody could be told.
  void WatchLog(std::function<uint64_t()> num_lost);
  // The same for spans that are sent to a collector.
  struct TraceCounts {
    uint64_t sent = 0, dropped = 0;
  };
  void WatchTraces(std::function<TraceCounts()> counts);
  // The same for experts that come from disk.
  void WatchPaging(std::function<PagingState()> state);
  PagingState paging() const;
  // The same for cached blocks that routers are told of.
  void WatchEvents(std::function<KvEventCounts()> counts);
  // The same for batch jobs.
  void WatchBatches(std::function<BatchCounts()> counts);
  void ForgetListeners();
  std::optional<HostCounts> models() const;  // none: one model is served
  // What each key asked for and was refused, by its name. Before the first scrape; outlives this.
  void WatchKeys(const RateLimiter& limiter);
  // What requests hold, likewise.
  void WatchAccounts(const Accounts& accounts);
  std::optional<AccountCounts> account_counts() const;

  std::vector<std::pair<std::string, HttpCounts>> listeners() const;

  // How turns ended, by HTTP status and error code (empty: none).
  struct Ends {
    int status = 0;
    std::string code;
    uint64_t count = 0;
  };
  // An observer that counts ends and then tells `next`, which may be null and outlives it.
  std::unique_ptr<TurnObserver> CountEnds(TurnObserver* next);
  std::vector<Ends> ends() const;
  double uptime_s() const;
  const MetricFacts& facts() const;

  enum class Names : unsigned char { kOurs, kBoth };
  // The whole page, in Prometheus' text format.
  std::string Text(const EngineSnapshot& snapshot, Names names) const;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

// Memory that this process holds.
int64_t ResidentBytes();

// GET /metrics, for admins: `?names=hearth` leaves out the other names, which linters dislike.
// Takes nothing from the engine but its last snapshot. All of it outlives the router.
void AddMetricsRoute(const SnapshotSource& source, const ServerMetrics& metrics, Auth auth,
                     Router& router);

}  // namespace hearth
