// SPDX-License-Identifier: Apache-2.0
// Sends spans to a collector over HTTP from a thread of its own. Whoever makes spans never waits:
// what finds no room is dropped and counted.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "trace/span.h"
namespace hearth {

struct ExporterOptions {
  std::string url;           // http(s)://host:port[/v1/traces]
  size_t max_queued = 8192;  // spans
  size_t max_batch = 512;    // spans in one request
  int64_t every_ms = 1000;   // so long a span waits for others to go with
  long timeout_s = 5;        // of one request
  ResourceAttributes resource = {};
  std::string version = {};
};

// The address that spans are posted to: OTLP's path is added where there is none. kInvalid for what
// is no http or https URL.
Result<std::string> CheckTraceUrl(const std::string& url);

struct ExportCounts {
  uint64_t sent = 0, dropped = 0;
};

// Thread: any.
class TraceExporter {
 public:
  explicit TraceExporter(ExporterOptions options);
  ~TraceExporter();  // sends what is queued, once, within the timeout

  void Offer(std::vector<TraceSpan> spans);
  // Of one that could not be made.
  void CountDropped();
  ExportCounts counts() const;
  // Until all that was offered is sent or dropped, or the time is over: for tests.
  bool WaitUntilEmpty(int64_t timeout_ms);

 private:
  void Run();
  bool Send(const std::vector<TraceSpan>& batch);

  const ExporterOptions options_;
  struct Curl;
  const std::unique_ptr<Curl> curl_;  // of the thread
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<TraceSpan> queue_ HEARTH_GUARDED_BY(mu_);
  ExportCounts counts_ HEARTH_GUARDED_BY(mu_);
  bool is_sending_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_ending_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_flushing_ HEARTH_GUARDED_BY(mu_) = false;
  bool has_complained_ = false;  // of the thread
  std::thread thread_;           // last: it uses all of the above
};

}  // namespace hearth
