// SPDX-License-Identifier: Apache-2.0
// The engine's door: answers at once whether a request is let in, and hands those over to the
// engine thread. Bounded by requests, by tokens and by the wait that today's rates predict.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "engine/clock.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "kv/tier.h"
namespace hearth {

struct AdmissionLimits {
  int max_requests = 10'000;        // waiting
  int64_t max_tokens = 16'000'000;  // of waiting prompts
  double max_wait_s = 600;          // predicted, until the first token is computed
  double tenant_share = 0.8;        // of the two counts above, for any one tenant
  uint64_t first_id = 1;            // of sequences: several engines begin far apart
};

// What the engine thread last knew of its speed; the door predicts with it.
struct AdmissionRates {
  int64_t backlog_tokens = 0;       // of prompts that run already
  double prefill_us_per_token = 0;  // 0: not measured yet
  double ended_per_s = 0;           // requests, lately
  bool is_full = false;             // one has to end before another one starts
};

// Thread: any, except what says otherwise.
class Inbox : public TierListener {
 public:
  Inbox(const AdmissionLimits& limits, int max_context, int max_sequence_tokens, int vocab_size,
        int hidden_size = 0, const Clock* clock = nullptr);

  Admission Offer(Request request, std::shared_ptr<EventSink> sink, int64_t now_us);
  void Cancel(SeqId id);  // ids that are unknown or have ended are ignored
  void Close();           // from now on everything is refused

  // A tier's answer. What arrived damaged counts as failed; that is found out here, on the tier's
  // thread.
  void OnTransfer(TierDone done) override;

  // Engine thread. What came since the last call.
  struct Transfer {
    TierDone done;
    int64_t at_us = 0;  // when it came, by the clock: a step may have run since
  };
  struct Messages {
    std::vector<std::unique_ptr<Sequence>> arrived;  // oldest first
    std::vector<SeqId> cancelled;
    std::vector<Transfer> transfers;
  };
  Messages Take();
  // Requests came since the last call of Take.
  bool has_arrivals() const { return has_arrivals_; }
  void OnStarted(SeqId id);
  void OnRequeued(SeqId id);  // it was preempted
  void OnEnded(SeqId id);
  void SetRates(const AdmissionRates& rates);
  // Waits until there is a message, or `timeout_us` have passed (negative: for ever). Says which.
  bool Wait(int64_t timeout_us);
  void Wake();

  struct Counts {
    uint64_t num_admitted = 0, num_refused = 0;
    int queued_requests = 0, num_live = 0;
    int64_t queued_tokens = 0;
    bool is_closed = false;
    double wait_s = 0;  // until the first token of a short prompt that came now, by today's rates
  };
  Counts counts() const;

 private:
  struct Live {
    uint32_t tenant = 0;
    int num_tokens = 0;
    bool is_queued = true, is_cancelled = false;
  };
  struct Tenant {
    int num_live = 0, num_queued = 0;
    int64_t queued_tokens = 0;
  };
  Status CheckFits(const Request& request) const;
  Status CheckRoom(const Request& request, Admission& admission) const HEARTH_REQUIRES(mutex_);
  double PredictedWaitS(const Request& request) const HEARTH_REQUIRES(mutex_);
  void Enqueue(Live& live, int sign) HEARTH_REQUIRES(mutex_);

  const AdmissionLimits limits_;
  const int max_context_, max_sequence_tokens_, vocab_size_, hidden_size_;
  const Clock* const clock_;
  mutable Mutex mutex_;
  CondVar mail_;
  std::atomic<bool> has_arrivals_{false};
  std::vector<std::unique_ptr<Sequence>> arrived_ HEARTH_GUARDED_BY(mutex_);
  std::vector<SeqId> cancelled_ HEARTH_GUARDED_BY(mutex_);
  std::vector<Transfer> transfers_ HEARTH_GUARDED_BY(mutex_);
  std::unordered_map<SeqId, Live> live_ HEARTH_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, Tenant> tenants_ HEARTH_GUARDED_BY(mutex_);
  AdmissionRates rates_ HEARTH_GUARDED_BY(mutex_);
  Counts counts_ HEARTH_GUARDED_BY(mutex_);
  uint64_t next_id_ HEARTH_GUARDED_BY(mutex_);
  bool woken_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth
