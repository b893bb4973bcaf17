// SPDX-License-Identifier: Apache-2.0
// The engine's door: answers at once whether a request is let in, and hands those over to the
// engine thread. Bounded by requests, by tokens and by the wait that today's rates predict.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "engine/request.h"
#include "engine/sequence.h"
namespace hearth {

struct AdmissionLimits {
  int max_requests = 10'000;        // waiting
  int64_t max_tokens = 16'000'000;  // of waiting prompts
  double max_wait_s = 600;          // predicted, until the first token is computed
};

// What the engine thread last knew of its speed; the door predicts with it.
struct AdmissionRates {
  int64_t backlog_tokens = 0;       // of prompts that run already
  double prefill_us_per_token = 0;  // 0: not measured yet
  double requests_per_s = 0;        // that ended lately
  bool is_full = false;             // one has to end before another one starts
};

// Thread: any, except what says otherwise.
class Inbox {
 public:
  Inbox(const AdmissionLimits& limits, int max_context, int max_sequence_tokens, int vocab_size);

  Admission Offer(Request request, std::shared_ptr<EventSink> sink, int64_t now_us);
  void Cancel(SeqId id);  // ids that are unknown or have ended are ignored
  void Close();           // from now on everything is refused

  // Engine thread. What came since the last call.
  struct Mail {
    std::vector<std::unique_ptr<Sequence>> arrived;  // oldest first
    std::vector<SeqId> cancelled;
  };
  Mail Take();
  void OnLeftQueue(int num_prompt);  // it started, or ended before it did
  void OnRequeued(int num_prompt);   // it was preempted
  void OnEnded(SeqId id);
  void SetRates(const AdmissionRates& rates);
  // Waits until there is mail, or `timeout_us` have passed.
  void WaitForMail(int64_t timeout_us);
  void Wake();

  struct Counts {
    uint64_t num_admitted = 0, num_refused = 0;
    int queued_requests = 0, num_live = 0;
    int64_t queued_tokens = 0;
    bool is_closed = false;
  };
  Counts counts() const;

 private:
  Status CheckFits(const Request& request) const;
  double PredictedWaitS(int64_t new_tokens) const;
  double RetryAfterS(double wait_s) const;

  const AdmissionLimits limits_;
  const int max_context_, max_sequence_tokens_, vocab_size_;
  mutable std::mutex mutex_;
  std::condition_variable mail_;
  std::vector<std::unique_ptr<Sequence>> arrived_;
  std::vector<SeqId> cancelled_;
  std::unordered_set<SeqId> live_, cancelling_;
  AdmissionRates rates_;
  Counts counts_;
  uint64_t next_id_ = 1;
  bool woken_ = false;
};

}  // namespace hearth
