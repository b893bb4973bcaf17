// SPDX-License-Identifier: Apache-2.0
// Where `hearth top` gets its figures: GET /status of a running server, asked again and again over
// one connection, without ever keeping a terminal from answering its user.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ask/server_call.h"
#include "base/json.h"
#include "base/result.h"
namespace hearth {

// Thread: one.
class StatusSource {
 public:
  // kInvalid for an address that is none.
  static Result<std::unique_ptr<StatusSource>> Open(ServerAddress address);
  ~StatusSource();

  // Begins to ask; nothing happens when a question is under way.
  void Begin();
  // Until an answer is there, one of `fds` can be read, or the time is over; -1: no bound. The
  // answer is a status, or one line on why there is none, with the address in it.
  std::optional<Result<Json>> Wait(std::span<const int> fds, int timeout_ms);
  // One question and its answer, within seconds.
  Result<Json> Ask();

 private:
  struct Impl;
  explicit StatusSource(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// What an answer means: a status, or one line on why it is none. `had_key`: one was sent.
Result<Json> ReadStatusAnswer(long http_status, std::string_view body, bool had_key);

}  // namespace hearth
