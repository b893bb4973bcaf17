// SPDX-License-Identifier: Apache-2.0
// One line per request: sizes, times and ids, and nothing that anybody wrote. JSON for programs, or
// a short line for people at a terminal.
#pragma once
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "server/observe/worker_facts.h"
#include "server/turns/exchange.h"
namespace hearth {

// What the line says.
Json OutcomeAsJson(const TurnOutcome& outcome, int64_t now_ms);
// "14:03:22 chat 200  1234 prompt (1024 cached) + 56 reply tokens, 12.3 tok/s, 4.61 s", in local
// time. The rate is that of the reply once it had begun.
std::string OutcomeAsLine(const TurnOutcome& outcome, int64_t now_ms);

// Lines are written by a thread of its own. Where the disk cannot keep up the oldest ones go:
// nobody waits for a log. A line that cannot be written, because the reader of a pipe has gone or
// the disk is full, is lost and counted; SIGPIPE must be ignored for that.
class RequestLog : public TurnObserver {
 public:
  enum class Form : unsigned char { kJson, kLine };
  // Appends to the file, which is its owner's alone if it is new; "-" is stderr.
  static Result<std::unique_ptr<RequestLog>> Open(const std::string& path, Form form = Form::kJson);
  ~RequestLog() override;  // writes what is queued
  void OnEnd(const TurnOutcome& outcome) override;
  // A line of its own, in JSON logs: {"time", "event": "restart", "worker": …}
  void TellRestart(const WorkerFacts& worker);
  // Lines that could not be written, or were pushed out by newer ones.
  uint64_t num_lost() const;
  // Somebody moved the file away: goes on in a new one of that name. When that cannot be opened,
  // lines go where they went.
  Status Reopen();

 private:
  struct Impl;
  explicit RequestLog(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
