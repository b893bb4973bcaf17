// SPDX-License-Identifier: Apache-2.0
// The bytes of one answer on their way from whichever thread writes them to the connection's own
// thread. No socket here.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "http/message.h"
#include "http/request_hold.h"
namespace hearth {

// Thread: the HttpReply half is for any thread; Take, Gone and set_wake for the connection's.
class Outbox final : public HttpReply {
 public:
  struct Form {
    bool http_1_0 = false;   // no chunks: the end of the connection ends the answer
    bool keep_alive = true;  // what the other side wants; an answer may still close
    bool omit_body = false;  // HEAD
    size_t max_unsent_bytes = size_t{8} << 20;
    Headers headers = {};  // beside the answer's own
    // Once true, answers that begin say that they are the connection's last; may be null.
    std::shared_ptr<const std::atomic<bool>> draining = nullptr;
    std::shared_ptr<RequestHold> hold = nullptr;  // told what is unsent; may be null
  };
  explicit Outbox(Form form) : form_(std::move(form)) {}

  void Send(int status, Headers headers, std::string body) override;
  void StartStream(int status, Headers headers) override;
  void Write(std::string bytes) override;
  void End() override;
  void Abort() override;
  size_t unsent_bytes() const override;
  bool is_gone() const override;
  void OnGone(std::function<void()> gone) override;

  // Called (on the writer's thread, which must not be kept or come back here) whenever Take has
  // something new to say.
  void set_wake(std::function<void()> wake);
  struct Taken {
    std::string bytes;
    bool ended = false, aborted = false;
  };
  // All that is queued; it counts as unsent until the next Take.
  Taken Take();
  void Gone();
  // For whoever comes after a handler that failed: an answer if there is none yet, else an end of
  // the one that was begun, as broken.
  void SendIfUnstarted(int status, Headers headers, std::string body);
  bool keep_alive() const;
  int status() const;

 private:
  bool MayKeepAlive() const;
  void Queue(std::string_view bytes) HEARTH_REQUIRES(mu_);
  std::string Head(int status, const Headers& headers, const std::string& framing) const
      HEARTH_REQUIRES(mu_);
  void Wake() HEARTH_REQUIRES(mu_);
  void TellHold() HEARTH_REQUIRES(mu_);

  const Form form_;
  mutable Mutex mu_;
  std::string queue_ HEARTH_GUARDED_BY(mu_);
  size_t taken_bytes_ HEARTH_GUARDED_BY(mu_) = 0;
  bool started_ HEARTH_GUARDED_BY(mu_) = false;
  bool ended_ HEARTH_GUARDED_BY(mu_) = false;
  bool aborted_ HEARTH_GUARDED_BY(mu_) = false;
  bool gone_ HEARTH_GUARDED_BY(mu_) = false;
  bool close_ HEARTH_GUARDED_BY(mu_) = false;
  int status_ HEARTH_GUARDED_BY(mu_) = 0;
  std::function<void()> wake_ HEARTH_GUARDED_BY(mu_);
  std::function<void()> on_gone_ HEARTH_GUARDED_BY(mu_);
};

// Ends the waking of a coroutine with its frame, also when a server that goes destroys it where it
// waits.
struct Silence {
  Outbox& outbox;
  ~Silence() { outbox.set_wake(nullptr); }
};

}  // namespace hearth
