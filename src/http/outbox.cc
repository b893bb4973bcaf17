// SPDX-License-Identifier: Apache-2.0
#include "http/outbox.h"

#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "http/reason.h"

namespace hearth {

std::string Outbox::Head(int status, const Headers& headers, const std::string& framing) const {
  std::string out;
  out.reserve(512);  // most heads: they are written for every answer
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += ReasonOf(status);
  out += "\r\n";
  for (const Headers* list : {&headers, &form_.headers}) {
    for (const HttpHeader& h : *list) {
      // A line break in a value would start a header, or a body, of someone else's choosing.
      HEARTH_CHECK(h.name.find_first_of("\r\n") == std::string::npos);
      HEARTH_CHECK(h.value.find_first_of("\r\n") == std::string::npos);
      out += h.name;
      out += ": ";
      out += h.value;
      out += "\r\n";
    }
  }
  out += framing;
  if (close_) {
    out += "connection: close\r\n";
  } else if (form_.http_1_0) {
    out += "connection: keep-alive\r\n";
  }
  out += "\r\n";
  return out;
}

bool Outbox::MayKeepAlive() const {
  return form_.keep_alive && (form_.draining == nullptr || !form_.draining->load());
}

void Outbox::Send(int status, Headers headers, std::string body) {
  const MutexLock lock(mu_);
  HEARTH_CHECK(!started_);
  close_ = !MayKeepAlive();
  std::string bytes;
  if (!gone_) {
    bytes = Head(status, headers, "content-length: " + std::to_string(body.size()) + "\r\n");
    if (!form_.omit_body) bytes += body;
  }
  // Only now, when no memory is needed any more: a caller that failed may try something smaller.
  queue_ = std::move(bytes);
  started_ = ended_ = true;
  status_ = status;
  TellHold();
  Wake();
}

void Outbox::SendIfUnstarted(int status, Headers headers, std::string body) {
  bool is_started = false;
  {
    const MutexLock lock(mu_);
    is_started = started_;
  }
  if (is_started) return Abort();
  Send(status, std::move(headers), std::move(body));
}

void Outbox::StartStream(int status, Headers headers) {
  const MutexLock lock(mu_);
  HEARTH_CHECK(!started_);
  close_ = !MayKeepAlive() || form_.http_1_0;
  queue_ = Head(status, headers, form_.http_1_0 ? "" : "transfer-encoding: chunked\r\n");
  started_ = true;
  status_ = status;
  Wake();
}

void Outbox::Queue(std::string_view bytes) {
  const std::string size = form_.http_1_0 ? "" : Printf("%zx\r\n", bytes.size());
  queue_.reserve(queue_.size() + size.size() + bytes.size() + 2);  // whole chunks or none
  queue_ += size;
  queue_ += bytes;
  if (!form_.http_1_0) queue_ += "\r\n";
}

void Outbox::Write(std::string bytes) {
  const MutexLock lock(mu_);
  if (gone_ || aborted_ || form_.omit_body || bytes.empty()) return;  // an empty chunk is the end
  HEARTH_CHECK(started_ && !ended_);
  Queue(bytes);
  if (queue_.size() + taken_bytes_ > form_.max_unsent_bytes) aborted_ = true;
  TellHold();
  Wake();
}

void Outbox::End() {
  const MutexLock lock(mu_);
  if (gone_ || aborted_) return;
  HEARTH_CHECK(started_ && !ended_);
  if (!form_.http_1_0 && !form_.omit_body) queue_ += "0\r\n\r\n";
  ended_ = true;  // only now: without memory for its last bytes it can still be aborted
  Wake();
}

void Outbox::Abort() {
  const MutexLock lock(mu_);
  if (ended_) return;
  aborted_ = true;
  Wake();
}

// Under the lock, so that after set_wake(nullptr) nobody is still at it: what wakes a connection
// dies with the server, and a handler may hold its reply for longer.
void Outbox::Wake() {
  if (wake_) wake_();
}

void Outbox::TellHold() {
  if (form_.hold != nullptr) form_.hold->SetReply(queue_.size() + taken_bytes_);
}

bool Outbox::is_gone() const {
  const MutexLock lock(mu_);
  return gone_;
}

size_t Outbox::unsent_bytes() const {
  const MutexLock lock(mu_);
  return queue_.size() + taken_bytes_;
}

void Outbox::OnGone(std::function<void()> gone) {
  MutexLock lock(mu_);
  if (!gone_) {
    if (!ended_) on_gone_ = std::move(gone);
    return;
  }
  lock.Unlock();
  gone();
}

void Outbox::set_wake(std::function<void()> wake) {
  const MutexLock lock(mu_);
  wake_ = std::move(wake);
}

Outbox::Taken Outbox::Take() {
  const MutexLock lock(mu_);
  Taken taken{std::exchange(queue_, {}), ended_, aborted_};
  taken_bytes_ = taken.bytes.size();
  TellHold();
  return taken;
}

void Outbox::Gone() {
  MutexLock lock(mu_);
  if (gone_) return;
  gone_ = true;
  queue_ = {};  // its memory too: a handler may hold this for longer
  taken_bytes_ = 0;
  TellHold();
  const std::function<void()> gone = std::exchange(on_gone_, nullptr);
  const bool tell = !ended_;  // a handler that has ended its answer needs no news
  wake_ = nullptr;
  lock.Unlock();
  if (gone && tell) gone();
}

bool Outbox::keep_alive() const {
  const MutexLock lock(mu_);
  return !close_;
}

int Outbox::status() const {
  const MutexLock lock(mu_);
  return status_;
}

}  // namespace hearth
