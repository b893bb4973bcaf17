// SPDX-License-Identifier: Apache-2.0
#include "engine/inbox.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/check.h"
#include "kv/block_record.h"

namespace hearth {
namespace {

// Nobody is told to come back sooner or later than this.
constexpr double kMinRetryS = 1, kMaxRetryS = 600;

long long Long(int64_t value) { return static_cast<long long>(value); }

}  // namespace

Inbox::Inbox(const AdmissionLimits& limits, int max_context, int max_sequence_tokens,
             int vocab_size, int hidden_size, const Clock* clock)
    : limits_(limits),
      max_context_(max_context),
      max_sequence_tokens_(max_sequence_tokens),
      vocab_size_(vocab_size),
      hidden_size_(hidden_size),
      clock_(clock),
      next_id_(limits.first_id) {}

// What no waiting would change.
Status Inbox::CheckFits(const Request& request) const {
  if (request.prompt.empty()) return Error(Code::kInvalid, "the prompt is empty");
  if (request.max_tokens < 0 || request.timeout_us < 0) {
    return Error(Code::kInvalid, "max_tokens (%d) and timeout (%lld us) must not be negative",
                 request.max_tokens, Long(request.timeout_us));
  }
  for (const std::vector<Token>* tokens : {&request.prompt, &request.said}) {
    for (const Token token : *tokens) {
      if (token >= 0 && token < vocab_size_) continue;
      return Error(Code::kInvalid, "token %d is outside the vocabulary of %d tokens", token,
                   vocab_size_);
    }
  }
  HEARTH_TRY(Validate(request.sampling, vocab_size_));
  if (request.pools && (!request.prompt_only || hidden_size_ == 0)) {
    return Error(
        hidden_size_ == 0 ? Code::kUnsupported : Code::kInvalid,
        "embeddings need a request without a reply and a backend that can pool hidden states");
  }
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const auto said = static_cast<int64_t>(request.said.size());
  if (said > 0 && (request.prompt_only || (request.max_tokens > 0 && said >= request.max_tokens))) {
    return Error(Code::kInvalid, "%lld tokens were said already, and at most %d may be", Long(said),
                 request.max_tokens);
  }
  const int64_t generated =
      request.prompt_only ? 0 : std::max<int64_t>(said + 1, request.max_tokens);
  if (prompt + generated > max_context_) {
    return Error(Code::kInvalid,
                 "context_length_exceeded: %lld prompt tokens plus %lld tokens to generate are "
                 "%lld; the model's context length is %d",
                 Long(prompt), Long(generated), Long(prompt + generated), max_context_);
  }
  if (prompt + generated > max_sequence_tokens_) {
    return Error(Code::kInvalid,
                 "%lld prompt tokens plus %lld tokens to generate are %lld; this server's KV cache "
                 "holds at most %d tokens per sequence",
                 Long(prompt), Long(generated), Long(prompt + generated), max_sequence_tokens_);
  }
  return Status();
}

// Seconds until the prompt would be computed: the work before it at the measured rate, its own
// tenant's share of it if that is less; and, when the machine is full, until enough others ended.
double Inbox::PredictedWaitS(const Request& request) const {
  const auto own = static_cast<double>(request.prompt.size() + request.said.size());
  const auto found = tenants_.find(request.domain.tenant);
  const Tenant tenant = found == tenants_.end() ? Tenant() : found->second;
  const double num_tenants =
      static_cast<double>(tenants_.size()) + (found == tenants_.end() ? 1 : 0);
  const double everybodys = static_cast<double>(rates_.backlog_tokens + counts_.queued_tokens);
  const double fair = num_tenants * static_cast<double>(tenant.queued_tokens) +
                      std::min(static_cast<double>(rates_.backlog_tokens), own * num_tenants);
  const double by_tokens = (own + std::min(everybodys, fair)) * rates_.prefill_us_per_token * 1e-6;
  if (!rates_.is_full || rates_.ended_per_s <= 0) return by_tokens;
  const double ahead =
      1 + std::min(static_cast<double>(counts_.queued_requests), num_tenants * tenant.num_queued);
  return std::max(by_tokens, ahead / rates_.ended_per_s);
}

// What waiting would change, and for how long.
Status Inbox::CheckRoom(const Request& request, Admission& admission) const {
  const auto tokens = static_cast<int64_t>(request.prompt.size() + request.said.size());
  const auto found = tenants_.find(request.domain.tenant);
  const Tenant tenant = found == tenants_.end() ? Tenant() : found->second;
  admission.predicted_wait_s = PredictedWaitS(request);
  admission.queued_requests = counts_.queued_requests;
  admission.queued_tokens = counts_.queued_tokens;
  const auto refuse = [&](double seconds, Status status) {
    admission.retry_after_s = std::clamp(seconds, kMinRetryS, kMaxRetryS);
    return status;
  };
  if (counts_.is_closed)
    return refuse(kMaxRetryS, Error(Code::kExhausted, "the server is shutting down"));
  const double request_s = rates_.ended_per_s > 0 ? 1 / rates_.ended_per_s : 0;
  const double token_s = rates_.prefill_us_per_token * 1e-6;
  const double share = limits_.tenant_share;
  // What others have waiting is not told: an operator finds it in /status.
  // A tenth of the queue has to go before another try makes sense, else all come back at once.
  if (counts_.queued_requests >= limits_.max_requests ||
      tenant.num_queued >= std::max(1, static_cast<int>(limits_.max_requests * share))) {
    return refuse(
        0.1 * limits_.max_requests * request_s,
        Error(Code::kExhausted,
              "the queue is full: %d requests of this tenant are waiting; the limit is %d, of "
              "which one tenant may use %.0f %%",
              tenant.num_queued, limits_.max_requests, 100 * share));
  }
  if (counts_.queued_tokens + tokens > limits_.max_tokens ||
      static_cast<double>(tenant.queued_tokens + tokens) >
          static_cast<double>(limits_.max_tokens) * share) {
    return refuse(
        0.1 * static_cast<double>(limits_.max_tokens) * token_s,
        Error(Code::kExhausted,
              "the queue is full: %lld prompt tokens of this tenant are waiting and this request "
              "has %lld; the limit is %lld, of which one tenant may use %.0f %%",
              Long(tenant.queued_tokens), Long(tokens), Long(limits_.max_tokens), 100 * share));
  }
  const double wait = admission.predicted_wait_s;
  if (wait > limits_.max_wait_s) {
    return refuse(
        wait - limits_.max_wait_s,
        Error(Code::kExhausted,
              "the server is overloaded: this request would wait %.0f s; the limit is %.0f s", wait,
              limits_.max_wait_s));
  }
  const double timeout_s = static_cast<double>(request.timeout_us) * 1e-6;
  if (timeout_s > 0 && wait > timeout_s) {
    return refuse(wait - timeout_s, Error(Code::kExhausted,
                                          "the server is overloaded: this request would wait %.1f "
                                          "s, longer than its timeout of %.1f s",
                                          wait, timeout_s));
  }
  return Status();
}

Admission Inbox::Offer(Request request, std::shared_ptr<EventSink> sink, int64_t now_us) {
  HEARTH_CHECK(sink != nullptr);
  Admission admission;
  admission.status = CheckFits(request);
  auto sequence = std::make_unique<Sequence>();
  if (admission.ok()) {
    sequence->past.emplace(request.sampling, request.prompt, request.choice);
    for (const Token token : request.said) sequence->past->Append(token);
    if (request.pools) sequence->pool.assign(static_cast<size_t>(hidden_size_), 0);
  }
  {
    const MutexLock lock(mutex_);
    if (admission.ok()) admission.status = CheckRoom(request, admission);
    if (!admission.ok()) {
      ++counts_.num_refused;
      return admission;
    }
    // All that needs memory comes first: what fails here was never let in.
    const size_t num_tokens = request.prompt.size() + request.said.size();
    request.prompt.reserve(num_tokens);
    Live live{request.domain.tenant, static_cast<int>(num_tokens), true, false};
    Tenant& tenant = tenants_[live.tenant];
    admission.id = static_cast<SeqId>(next_id_);
    arrived_.push_back(nullptr);
    try {
      live_.emplace(admission.id, live);
    } catch (const std::bad_alloc&) {
      arrived_.pop_back();
      throw;
    }
    ++next_id_;
    ++counts_.num_admitted;
    Sequence& s = *sequence;
    s.id = admission.id;
    s.num_prompt = static_cast<int>(request.prompt.size());
    s.tokens = std::move(request.prompt);
    s.tokens.insert(s.tokens.end(), request.said.begin(), request.said.end());
    const int most = std::min(max_context_, max_sequence_tokens_);
    s.max_total = request.max_tokens > 0 ? s.num_prompt + request.max_tokens : most;
    if (request.prompt_only) s.max_total = s.num_prompt;
    s.deadline_us = request.timeout_us > 0 ? now_us + request.timeout_us : 0;
    s.sink = std::move(sink);
    s.record.id = s.id;
    s.record.domain = request.domain;
    s.record.priority = request.priority;
    s.record.num_prompt = s.num_prompt;
    s.record.arrived_us = now_us;
    s.request = std::move(request);
    s.request.prompt.clear();  // now in `tokens`
    ++tenant.num_live;
    Enqueue(live, 1);
    ++counts_.num_live;
    arrived_.back() = std::move(sequence);
    has_arrivals_ = true;
  }
  mail_.NotifyOne();
  return admission;
}

void Inbox::Enqueue(Live& live, int sign) {
  live.is_queued = sign > 0;
  Tenant& tenant = tenants_.at(live.tenant);
  tenant.num_queued += sign;
  tenant.queued_tokens += int64_t{sign} * live.num_tokens;
  counts_.queued_requests += sign;
  counts_.queued_tokens += int64_t{sign} * live.num_tokens;
}

void Inbox::Cancel(SeqId id) {
  {
    const MutexLock lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end() || found->second.is_cancelled) return;
    cancelled_.push_back(id);  // first: without memory for it nothing is cancelled yet
    found->second.is_cancelled = true;
  }
  mail_.NotifyOne();
}

void Inbox::Close() {
  {
    const MutexLock lock(mutex_);
    counts_.is_closed = true;
    woken_ = true;
  }
  mail_.NotifyOne();
}

Inbox::Messages Inbox::Take() {
  const MutexLock lock(mutex_);
  has_arrivals_ = false;
  return {std::exchange(arrived_, {}), std::exchange(cancelled_, {}),
          std::exchange(transfers_, {})};
}

void Inbox::OnTransfer(TierDone done) {
  if (!done.is_verified && !done.record.empty() && !IsIntact(done.record)) {
    done.outcome = TierOutcome::kFailed;
  }
  {
    const MutexLock lock(mutex_);
    transfers_.push_back({std::move(done), clock_ != nullptr ? clock_->now_us() : 0});
  }
  mail_.NotifyOne();
}

void Inbox::OnStarted(SeqId id) {
  const MutexLock lock(mutex_);
  const auto found = live_.find(id);
  if (found != live_.end() && found->second.is_queued) Enqueue(found->second, -1);
}

void Inbox::OnRequeued(SeqId id) {
  const MutexLock lock(mutex_);
  const auto found = live_.find(id);
  if (found != live_.end() && !found->second.is_queued) Enqueue(found->second, 1);
}

void Inbox::OnEnded(SeqId id) {
  const MutexLock lock(mutex_);
  const auto found = live_.find(id);
  HEARTH_CHECK(found != live_.end());
  if (found->second.is_queued) Enqueue(found->second, -1);
  const auto tenant = tenants_.find(found->second.tenant);
  if (--tenant->second.num_live == 0) tenants_.erase(tenant);
  live_.erase(found);
  --counts_.num_live;
}

void Inbox::SetRates(const AdmissionRates& rates) {
  const MutexLock lock(mutex_);
  rates_ = rates;
}

bool Inbox::Wait(int64_t timeout_us) {
  const MutexLock lock(mutex_);
  const auto has_mail = [&]() HEARTH_REQUIRES(mutex_) {
    return woken_ || !arrived_.empty() || !cancelled_.empty() || !transfers_.empty();
  };
  bool came = true;
  if (timeout_us < 0) {
    mail_.Wait(mutex_, has_mail);
  } else {
    came = mail_.WaitFor(mutex_, std::chrono::microseconds(timeout_us), has_mail);
  }
  woken_ = false;
  return came;
}

void Inbox::Wake() {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  mail_.NotifyOne();
}

Inbox::Counts Inbox::counts() const {
  const MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.wait_s = static_cast<double>(rates_.backlog_tokens + counts_.queued_tokens) *
                  rates_.prefill_us_per_token * 1e-6;
  if (rates_.is_full && rates_.ended_per_s > 0) {
    counts.wait_s = std::max(counts.wait_s, (1 + counts_.queued_requests) / rates_.ended_per_s);
  }
  return counts;
}

}  // namespace hearth
