// SPDX-License-Identifier: Apache-2.0
#include "server/observe/metrics.h"

#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

#include "base/mutex.h"
#include "server/observe/account_metrics.h"
#include "server/observe/metric_families.h"
#include "server/observe/tier_families.h"

namespace hearth {
namespace {

using prometheus::Histogram;

// From an idle machine's first token to a long prompt's on a small one.
const Histogram::BucketBoundaries kFirstToken{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                              2.5,   5,    10,    25,   50,  100,  250};
const Histogram::BucketBoundaries kBetweenTokens{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075,
                                                 0.1,   0.15,   0.2,   0.3,  0.5,   1,    2.5};
const Histogram::BucketBoundaries kWait{0.001, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
const Histogram::BucketBoundaries kWhole{0.05, 0.1, 0.5, 1,   2.5, 5,   10,
                                         25,   50,  100, 250, 500, 1000};
const Histogram::BucketBoundaries kTokens{1,    4,    16,    64,    256,   1024,
                                          4096, 8192, 16384, 32768, 65536, 131072};

double Seconds(int64_t us) { return static_cast<double>(us) * 1e-6; }

prometheus::ClientMetric::Histogram AsHistogram(const StepHistogram& steps) {
  prometheus::ClientMetric::Histogram out;
  out.sample_sum = Seconds(steps.sum_us);
  for (size_t i = 0; i < kStepBoundsUs.size(); ++i) {
    out.sample_count += steps.counts[i];
    out.bucket.push_back({out.sample_count, Seconds(kStepBoundsUs[i])});
  }
  out.sample_count += steps.counts.back();
  out.bucket.push_back({out.sample_count, std::numeric_limits<double>::infinity()});
  return out;
}

// Codes are words of ours, so there are few; this is for the day when one of them is not.
constexpr size_t kMaxEnds = 64;

}  // namespace

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct ServerMetrics::Impl {
  explicit Impl(MetricFacts f) : facts(std::move(f)), started_s(std::time(nullptr)) {}
  void Observe(const RequestRecord& record);

  const MetricFacts facts;
  const std::time_t started_s;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  Histogram first_token{kFirstToken}, between_tokens{kBetweenTokens}, wait{kWait}, whole{kWhole};
  Histogram prompt{kTokens}, reply{kTokens};
  std::atomic<uint64_t> num_generated{0};
  const RateLimiter* keys = nullptr;
  const Accounts* accounts = nullptr;
  mutable Mutex mu;
  std::vector<std::pair<std::string, std::function<HttpCounts()>>> listeners HEARTH_GUARDED_BY(mu);
  std::map<std::pair<int, std::string>, uint64_t> ends HEARTH_GUARDED_BY(mu);
  // Replies that were asked for again (docs/streams.md).
  uint64_t num_resumed HEARTH_GUARDED_BY(mu) = 0, num_replayed HEARTH_GUARDED_BY(mu) = 0;
  uint64_t num_from_journal HEARTH_GUARDED_BY(mu) = 0, num_recomputed HEARTH_GUARDED_BY(mu) = 0;
  std::function<StoreCounts()> store HEARTH_GUARDED_BY(mu);
  std::function<HostCounts()> models HEARTH_GUARDED_BY(mu);
  std::function<uint64_t()> num_lost_lines HEARTH_GUARDED_BY(mu);
  std::function<TraceCounts()> traces HEARTH_GUARDED_BY(mu);
  std::function<PagingState()> paging HEARTH_GUARDED_BY(mu);
  std::function<KvEventCounts()> events HEARTH_GUARDED_BY(mu);
  std::function<BatchCounts()> batches HEARTH_GUARDED_BY(mu);

  void AddTimes(const EngineSnapshot& snapshot, MetricFamilies& out) const;
  void AddHttp(MetricFamilies& out) const;
  void AddKeys(MetricFamilies& out) const;
  void AddStore(MetricFamilies& out) const;
  void AddFleet(MetricFamilies& out) const;
  void AddFacts(MetricFamilies& out) const;
  void AddProcess(MetricFamilies& out) const;
  void AddEnds(MetricFamilies& out) const;
  void CountEnd(const TurnOutcome& outcome);
  class EndCounter;
  // What passes from the engine to a client, measured on the engine's thread.
  class Meter;
};

class ServerMetrics::Impl::Meter : public EventSink {
 public:
  Meter(std::shared_ptr<Impl> impl, std::shared_ptr<EventSink> sink)
      : impl_(std::move(impl)), sink_(std::move(sink)) {}
  int Room() const override { return sink_->Room(); }
  void OnToken(const TokenEvent& event) override {
    const auto now = std::chrono::steady_clock::now();
    if (last_ != std::chrono::steady_clock::time_point()) {
      impl_->between_tokens.Observe(std::chrono::duration<double>(now - last_).count());
    }
    last_ = now;
    ++impl_->num_generated;
    sink_->OnToken(event);
  }
  void OnPromptLogprobs(int first, std::span<const Logprobs> logprobs) override {
    sink_->OnPromptLogprobs(first, logprobs);
  }
  void OnEmbedding(std::span<const float> embedding) override { sink_->OnEmbedding(embedding); }
  void OnFinish(const RequestRecord& record) override {
    impl_->Observe(record);
    sink_->OnFinish(record);
  }

 private:
  const std::shared_ptr<Impl> impl_;
  const std::shared_ptr<EventSink> sink_;
  std::chrono::steady_clock::time_point last_;
};

void ServerMetrics::Impl::Observe(const RequestRecord& record) {
  if (record.started_us > 0) wait.Observe(Seconds(record.started_us - record.arrived_us));
  if (record.first_token_us > 0) {
    first_token.Observe(Seconds(record.first_token_us - record.arrived_us));
  }
  whole.Observe(Seconds(record.ended_us - record.arrived_us));
  prompt.Observe(record.num_prompt);
  reply.Observe(record.num_generated);
}

void ServerMetrics::Impl::AddTimes(const EngineSnapshot& snapshot, MetricFamilies& out) const {
  const auto add = [&](const char* name, const char* help, const Histogram& histogram,
                       std::vector<const char*> theirs) {
    out.Histogram(name, help, histogram.Collect().histogram, theirs);
  };
  add("hearth_time_to_first_token_seconds", "From arrival to the first token.", first_token,
      {"vllm:time_to_first_token_seconds"});
  add("hearth_inter_token_seconds", "Between two tokens of one reply.", between_tokens,
      {"vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"});
  add("hearth_queue_wait_seconds", "From arrival to the first start.", wait,
      {"vllm:request_queue_time_seconds"});
  add("hearth_request_seconds", "From arrival to the end.", whole,
      {"vllm:e2e_request_latency_seconds"});
  add("hearth_request_prompt_tokens", "Tokens of a request's prompt.", prompt,
      {"vllm:request_prompt_tokens"});
  add("hearth_request_generated_tokens", "Tokens of a request's reply.", reply,
      {"vllm:request_generation_tokens"});
  out.Histogram("hearth_step_seconds", "One forward pass over a batch, and what belongs to it.",
                AsHistogram(snapshot.step_histogram), {});
  out.Counter("hearth_generated_tokens_total", "Tokens told to clients.",
              static_cast<double>(num_generated), {"vllm:generation_tokens_total"});
}

void ServerMetrics::Impl::AddHttp(MetricFamilies& out) const {
  std::vector<LabelledValue> open, total, refused, requests, refusals;
  const MutexLock lock(mu);
  for (const auto& [name, ask] : listeners) {
    const HttpCounts counts = ask();
    const auto add = [&](std::vector<LabelledValue>& to, int64_t value) {
      to.push_back({{{"listener", name}}, static_cast<double>(value)});
    };
    add(open, counts.connections_open);
    add(total, counts.connections_total);
    add(refused, counts.connections_refused);
    add(requests, counts.requests_total);
    add(refusals, counts.refusals_total);
  }
  out.Gauges("hearth_http_open_connections", "Connections open now.", open);
  out.Counters("hearth_http_connections_total", "Connections taken.", total);
  out.Counters("hearth_http_connections_refused_total", "Connections beyond a limit.", refused);
  out.Counters("hearth_http_requests_total", "Requests whose head was read.", requests);
  out.Counters("hearth_http_refusals_total", "Requests refused before a handler saw them.",
               refusals);
}

void ServerMetrics::Impl::AddKeys(MetricFamilies& out) const {
  if (keys == nullptr) return;
  std::vector<LabelledValue> requests, running, refused, tokens;
  for (const RateLimiter::Counts& each : keys->counts()) {
    const auto add = [&](std::vector<LabelledValue>& to, int64_t value, MetricLabels more) {
      more.insert(more.begin(), {"key", each.key});
      to.push_back({std::move(more), static_cast<double>(value)});
    };
    add(requests, each.num_requests, {});
    add(running, each.num_running, {});
    add(refused, each.refused_concurrent, {{"limit", "concurrent"}});
    add(refused, each.refused_requests, {{"limit", "requests"}});
    add(refused, each.refused_tokens, {{"limit", "tokens"}});
    add(tokens, each.prompt_tokens, {{"kind", "prompt"}});
    add(tokens, each.generated_tokens, {{"kind", "generated"}});
  }
  out.Counters("hearth_key_requests_total", "Requests of a key within its limits.", requests);
  out.Gauges("hearth_key_running_replies", "Replies of a key now running or waiting.", running);
  out.Counters("hearth_key_refused_total", "Requests of a key beyond a limit.", refused);
  out.Counters("hearth_key_tokens_total", "Tokens that a key was charged.", tokens);
}

void ServerMetrics::Impl::AddStore(MetricFamilies& out) const {
  const MutexLock lock(mu);
  if (!store) return;
  const StoreCounts counts = store();
  out.Gauge("hearth_stored_responses", "Responses that can be named by a later request.",
            static_cast<double>(counts.responses));
  out.Gauge("hearth_stored_response_bytes", "Bytes of their texts.",
            static_cast<double>(counts.bytes));
  out.Counter("hearth_response_store_failures_total", "Responses that could not be stored.",
              static_cast<double>(counts.failures));
}

void ServerMetrics::Impl::AddFleet(MetricFamilies& out) const {
  const MutexLock lock(mu);
  if (events) AddKvEvents(events(), out);
  if (batches) AddBatches(batches(), out);
}

void ServerMetrics::Impl::AddFacts(MetricFamilies& out) const {
  out.Gauges("hearth_build_info", "Always 1; the labels say what runs.",
             {{{{"version", facts.version}, {"isa", facts.isa}, {"numerics", facts.numerics}}, 1}});
  if (facts.max_context > 0) {
    out.Gauges("hearth_model_info", "Always 1; the labels say which model.",
               {{{{"model", facts.model}, {"max_context", std::to_string(facts.max_context)}}, 1}});
  }
  out.Gauges("process_start_time_seconds", "Seconds since 1970 at the start.",
             {{{}, static_cast<double>(started_s)}});
  out.Gauges("process_resident_memory_bytes", "Memory in use.",
             {{{}, static_cast<double>(ResidentBytes())}});
}

void ServerMetrics::Impl::AddProcess(MetricFamilies& out) const {
  out.Counter("hearth_worker_restarts_total", "Times that a new process took over from a dead one.",
              static_cast<double>(facts.worker.num_restarts));
  const MutexLock lock(mu);
  if (paging) AddPagingFamilies(paging(), out);
  if (traces) {
    const TraceCounts counts = traces();
    out.Counter("hearth_trace_spans_sent_total", "Spans that the trace collector accepted.",
                static_cast<double>(counts.sent));
    out.Counter("hearth_trace_spans_dropped_total",
                "Spans that were not sent: the queue was full, or the collector refused them.",
                static_cast<double>(counts.dropped));
  }
  if (!num_lost_lines) return;
  out.Counter("hearth_log_lines_lost_total", "Lines of the request log that could not be written.",
              static_cast<double>(num_lost_lines()));
}

class ServerMetrics::Impl::EndCounter : public TurnObserver {
 public:
  EndCounter(std::shared_ptr<Impl> impl, TurnObserver* next)
      : impl_(std::move(impl)), next_(next) {}
  void OnEnd(const TurnOutcome& outcome) override {
    impl_->CountEnd(outcome);
    if (next_ != nullptr) next_->OnEnd(outcome);
  }

 private:
  const std::shared_ptr<Impl> impl_;
  TurnObserver* const next_;
};

void ServerMetrics::Impl::CountEnd(const TurnOutcome& outcome) {
  std::pair<int, std::string> end{outcome.status, outcome.error_code};
  const MutexLock lock(mu);
  if (ends.size() >= kMaxEnds && !ends.contains(end)) end.second = "other";
  ++ends[std::move(end)];
  num_resumed += outcome.again == TurnOutcome::Again::kResumed ? 1 : 0;
  num_replayed += outcome.again == TurnOutcome::Again::kReplayed ? 1 : 0;
  num_from_journal += static_cast<uint64_t>(outcome.num_from_journal);
  num_recomputed += static_cast<uint64_t>(outcome.num_recomputed);
}

void ServerMetrics::Impl::AddEnds(MetricFamilies& out) const {
  std::vector<LabelledValue> values;
  const MutexLock lock(mu);
  for (const auto& [end, count] : ends) {
    values.push_back({{{"status", std::to_string(end.first)}, {"code", end.second}},
                      static_cast<double>(count)});
  }
  out.Counters("hearth_turns_total", "Turns that ended, by HTTP status and error code.", values);
  out.Counter("hearth_streams_resumed_total", "Streams continued after Last-Event-ID.",
              static_cast<double>(num_resumed));
  out.Counter("hearth_replies_replayed_total", "Replies given again to an Idempotency-Key.",
              static_cast<double>(num_replayed));
  out.Counters("hearth_resume_tokens_total",
               "Reply tokens that a resumed stream's client had: read from the journal, or "
               "computed again.",
               {{{{"source", "journal"}}, static_cast<double>(num_from_journal)},
                {{{"source", "computed"}}, static_cast<double>(num_recomputed)}});
}

ServerMetrics::ServerMetrics(MetricFacts facts) : impl_(std::make_shared<Impl>(std::move(facts))) {}

ServerMetrics::~ServerMetrics() = default;

std::shared_ptr<EventSink> ServerMetrics::Watch(std::shared_ptr<EventSink> sink) {
  return std::make_shared<Impl::Meter>(impl_, std::move(sink));
}

void ServerMetrics::AddListener(std::string name, std::function<HttpCounts()> counts) {
  const MutexLock lock(impl_->mu);
  impl_->listeners.emplace_back(std::move(name), std::move(counts));
}

void ServerMetrics::WatchKeys(const RateLimiter& limiter) { impl_->keys = &limiter; }

void ServerMetrics::WatchAccounts(const Accounts& accounts) { impl_->accounts = &accounts; }

std::optional<AccountCounts> ServerMetrics::account_counts() const {
  if (impl_->accounts == nullptr) return std::nullopt;
  return impl_->accounts->counts();
}

void ServerMetrics::WatchStore(std::function<StoreCounts()> counts) {
  const MutexLock lock(impl_->mu);
  impl_->store = std::move(counts);
}

void ServerMetrics::WatchModels(std::function<HostCounts()> counts) {
  const MutexLock lock(impl_->mu);
  impl_->models = std::move(counts);
}

std::optional<HostCounts> ServerMetrics::models() const {
  const MutexLock lock(impl_->mu);
  if (!impl_->models) return std::nullopt;
  return impl_->models();
}

void ServerMetrics::WatchLog(std::function<uint64_t()> num_lost) {
  const MutexLock lock(impl_->mu);
  impl_->num_lost_lines = std::move(num_lost);
}

void ServerMetrics::WatchTraces(std::function<TraceCounts()> counts) {
  const MutexLock lock(impl_->mu);
  impl_->traces = std::move(counts);
}

void ServerMetrics::WatchPaging(std::function<PagingState()> state) {
  const MutexLock lock(impl_->mu);
  impl_->paging = std::move(state);
}

PagingState ServerMetrics::paging() const {
  const MutexLock lock(impl_->mu);
  return impl_->paging ? impl_->paging() : PagingState();
}

void ServerMetrics::WatchEvents(std::function<KvEventCounts()> counts) {
  const MutexLock lock(impl_->mu);
  impl_->events = std::move(counts);
}

void ServerMetrics::WatchBatches(std::function<BatchCounts()> counts) {
  const MutexLock lock(impl_->mu);
  impl_->batches = std::move(counts);
}

void ServerMetrics::ForgetListeners() {
  const MutexLock lock(impl_->mu);
  impl_->paging = nullptr;
  impl_->events = nullptr;
  impl_->batches = nullptr;
  impl_->traces = nullptr;
  impl_->num_lost_lines = nullptr;
  impl_->listeners.clear();
  impl_->store = nullptr;
  impl_->models = nullptr;
}

std::vector<std::pair<std::string, HttpCounts>> ServerMetrics::listeners() const {
  std::vector<std::pair<std::string, HttpCounts>> out;
  const MutexLock lock(impl_->mu);
  for (const auto& [name, ask] : impl_->listeners) out.emplace_back(name, ask());
  return out;
}

std::unique_ptr<TurnObserver> ServerMetrics::CountEnds(TurnObserver* next) {
  return std::make_unique<Impl::EndCounter>(impl_, next);
}

std::vector<ServerMetrics::Ends> ServerMetrics::ends() const {
  std::vector<Ends> out;
  const MutexLock lock(impl_->mu);
  for (const auto& [end, count] : impl_->ends) out.push_back({end.first, end.second, count});
  return out;
}

double ServerMetrics::uptime_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - impl_->started).count();
}

const MetricFacts& ServerMetrics::facts() const { return impl_->facts; }

std::string ServerMetrics::Text(const EngineSnapshot& snapshot, Names names) const {
  MetricFamilies families(impl_->facts.model, names == Names::kBoth);
  impl_->AddFacts(families);
  impl_->AddProcess(families);
  AddEngine(snapshot, families);
  AddTier(snapshot, families);
  impl_->AddTimes(snapshot, families);
  impl_->AddHttp(families);
  impl_->AddKeys(families);
  impl_->AddEnds(families);
  impl_->AddStore(families);
  impl_->AddFleet(families);
  if (const auto counts = models()) AddModels(*counts, families);
  if (const auto counts = account_counts()) AddAccounts(*counts, families);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families.all());
  return std::move(out).str();
}

void AddMetricsRoute(const SnapshotSource& source, const ServerMetrics& metrics, Auth auth,
                     Router& router) {
  router.Add(
      "GET", "/metrics", auth,
      [source, &metrics](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
        const auto names = request.query == "names=hearth" ? ServerMetrics::Names::kOurs
                                                           : ServerMetrics::Names::kBoth;
        reply->Send(200,
                    {{"content-type", "text/plain; version=0.0.4; charset=utf-8"},
                     {"cache-control", "no-store"}},
                    metrics.Text(*source(), names));
      });
}

}  // namespace hearth
