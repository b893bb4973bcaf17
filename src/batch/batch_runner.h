// SPDX-License-Identifier: Apache-2.0
// Runs the lines of batch jobs, a few at a time, as requests that give way to everybody else's.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clocks.h"
#include "base/result.h"
#include "batch/batch_store.h"
#include "http/message.h"
namespace hearth {

// Hands a request to the API, which answers on any thread.
using BatchSend = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;
// Whether somebody else's request runs or waits now.
using BatchBusy = std::function<bool()>;

struct BatchOptions {
  int max_in_flight = 8;  // lines of all jobs together
  ClockFn clocks = ReadClocks;
  std::chrono::milliseconds look_every{500};
  std::chrono::milliseconds renew_every{10'000};  // claims; well below the store's claim_s
  std::chrono::milliseconds count_every{2'000};
};

// What an answer means for a line. Pure.
struct LineFate {
  bool is_again = false;  // it was not this request's fault: it is run later
  bool is_error = false;
  double after_s = 0;  // is_again: not before
};
LineFate FateOf(int status, const std::string& body, const HttpReply::Headers& headers);

// A line that was begun when the process ended is run again by the next one: only an answer that is
// in the store counts. Thread: any.
class BatchRunner {
 public:
  BatchRunner(BatchStore& store, const BatchOptions& options);
  ~BatchRunner();  // stops
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;
  // Once. While others ask, one line runs at a time: on a processor each more makes everybody's
  // steps longer, and none at all would leave a job of a busy server undone.
  void Start(BatchSend send, BatchBusy is_busy = {});
  void Wake();  // a job came, or was cancelled
  void Stop();  // ends what runs, without an answer; for good
  ClockReading clocks() const { return options_.clocks(); }

  // What the store said last, so that nobody who asks waits for it; and what this process did.
  struct Counts {
    JobCounts store = {};
    int64_t running = 0;
    uint64_t completed = 0, failed = 0;
    bool is_held = false;  // the store failed, such as for want of room: lines wait for it
  };
  Counts counts() const;

 private:
  class Reply;
  struct Answer;
  struct Shared;
  using Time = std::chrono::steady_clock::time_point;
  struct Job {
    int64_t cursor = 0;  // the last line that was begun
    std::map<int64_t, std::shared_ptr<Reply>> running = {};
    Time paused_until = {};
  };

  void Run();
  void Tell(const Status& status);
  Status Look();
  Status TakeAnswers();
  Status Renew();
  Status Count();
  Status Validate(const BatchRow& batch);
  // Whether there was a line to begin.
  Result<bool> BeginLine(const BatchRow& batch, Job& job);
  Status EndIfDone(const BatchRow& batch, Job& job, int64_t age_s);
  void LeaveOthers(const std::vector<BatchRow>& unfinished);
  static void Leave(const Job& job);

  BatchStore& store_;
  const BatchOptions options_;
  const std::shared_ptr<Shared> shared_;
  BatchSend send_;
  BatchBusy is_busy_;
  // Of its thread, all of these.
  std::map<std::string, Job> jobs_;
  int num_running_ = 0;
  std::string last_complaint_;  // empty: the store works
  Time renewed_at_ = {}, counted_at_ = {};
  std::thread thread_;
};

}  // namespace hearth
