// SPDX-License-Identifier: Apache-2.0
// A request whose model is being loaded, and what its client sees of that: nothing at first, then
// the head of its stream and a comment now and then.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "http/message.h"
#include "server/turns/model_source.h"
#include "server/turns/reply_writer.h"
namespace hearth {

// Thread: any.
class ModelWait {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Form {
    std::string model;  // for the comments
    std::vector<HttpHeader> headers;
    std::chrono::milliseconds ping_every{10'000};
    // Makes the writer of the request's stream, when there is one: for its form and its last event.
    // Null: the answer is whole, and nothing is said before it.
    std::function<std::unique_ptr<ReplyWriter>()> writer = {};
    int64_t timeout_us = 0;  // the request's own, which runs while it waits; 0: none
  };
  ModelWait(std::shared_ptr<HttpReply> reply, Form form, Time now);

  // True once: whoever gets it goes on with the request, or drops it.
  bool Take();
  bool is_taken() const;
  // For one that goes on without its client: the head and the writer's first events, at once.
  void Queue();
  // What the request's time limit leaves now: 0 when it has none, nothing when it is over.
  std::optional<int64_t> LeftUs(Time now) const;
  // A sign of life. The head waits for a second, so that what is refused soon has a status of its
  // own.
  void Ping(Time now);
  // Where the reply is written to now: for a stream whose head is out, without another one.
  std::shared_ptr<HttpReply> reply() const;
  // Ends a stream whose head is out with `error`. False: it is not, and the error can be sent.
  bool Fail(const ApiError& error);

  const std::string& model() const { return form_.model; }
  void set_ticket(ModelSource::Ticket ticket);
  ModelSource::Ticket ticket() const;

 private:
  void SendHead() HEARTH_REQUIRES(mu_);

  const std::shared_ptr<HttpReply> reply_;
  const Form form_;
  const Time since_;
  mutable Mutex mu_;
  std::unique_ptr<ReplyWriter> writer_ HEARTH_GUARDED_BY(mu_);
  bool is_taken_ HEARTH_GUARDED_BY(mu_) = false;
  bool has_head_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_silent_ HEARTH_GUARDED_BY(mu_) = false;  // its stream has no comments
  Time last_write_ HEARTH_GUARDED_BY(mu_);
  ModelSource::Ticket ticket_ HEARTH_GUARDED_BY(mu_) = 0;
};

}  // namespace hearth
