// SPDX-License-Identifier: Apache-2.0
// One line of JSON per request: sizes, times and ids, and nothing that anybody wrote.
#pragma once
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "server/turns/exchange.h"
namespace hearth {

// What the line says.
Json OutcomeAsJson(const TurnOutcome& outcome, int64_t now_ms);

// Lines are written by a thread of its own. Where the disk cannot keep up the oldest ones go:
// nobody waits for a log.
class RequestLog : public TurnObserver {
 public:
  // Appends to the file; "-" is stderr.
  static Result<std::unique_ptr<RequestLog>> Open(const std::string& path);
  ~RequestLog() override;  // writes what is queued
  void OnEnd(const TurnOutcome& outcome) override;

 private:
  struct Impl;
  explicit RequestLog(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
