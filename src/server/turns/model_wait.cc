// SPDX-License-Identifier: Apache-2.0
#include "server/turns/model_wait.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth {
namespace {

// Small models are there by then; a proxy or a person has noticed nothing.
constexpr std::chrono::milliseconds kQuiet{1000};
// While a model loads, people look at the screen more often than proxies do.
constexpr std::chrono::milliseconds kMaxPingEvery{5000};

// The stream of a reply whose head is out already.
class BegunReply final : public HttpReply {
 public:
  explicit BegunReply(std::shared_ptr<HttpReply> reply) : reply_(std::move(reply)) {}
  void Send(int status, Headers headers, std::string body) override {
    reply_->Send(status, std::move(headers), std::move(body));
  }
  void StartStream(int, Headers) override {}
  void Write(std::string bytes) override { reply_->Write(std::move(bytes)); }
  void End() override { reply_->End(); }
  void Abort() override { reply_->Abort(); }
  size_t unsent_bytes() const override { return reply_->unsent_bytes(); }
  size_t unheard_bytes() const override { return reply_->unheard_bytes(); }
  void OnGone(std::function<void()> gone) override { reply_->OnGone(std::move(gone)); }
  bool is_gone() const override { return reply_->is_gone(); }

 private:
  const std::shared_ptr<HttpReply> reply_;
};

}  // namespace

ModelWait::ModelWait(std::shared_ptr<HttpReply> reply, Form form, Time now)
    : reply_(std::move(reply)), form_(std::move(form)), since_(now), last_write_(now) {}

bool ModelWait::Take() {
  const MutexLock lock(mu_);
  return !std::exchange(is_taken_, true);
}

bool ModelWait::is_taken() const {
  const MutexLock lock(mu_);
  return is_taken_;
}

void ModelWait::SendHead() {
  HttpReply::Headers headers = form_.headers;
  headers.push_back({"content-type", writer_->stream_type()});
  headers.push_back({"cache-control", "no-cache"});
  headers.push_back({"x-accel-buffering", "no"});
  reply_->StartStream(200, std::move(headers));
  has_head_ = true;  // only now: without memory for it, it is sent the next time
}

void ModelWait::Queue() {
  const MutexLock lock(mu_);
  writer_ = form_.writer();
  // Before the head, which may be answered with what they say.
  std::string first = writer_->Begin();
  SendHead();
  reply_->Write(std::move(first));
}

std::optional<int64_t> ModelWait::LeftUs(Time now) const {
  if (form_.timeout_us <= 0) return 0;
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - since_);
  const int64_t left_us = form_.timeout_us - waited.count();
  if (left_us <= 0) return std::nullopt;
  return left_us;
}

void ModelWait::Ping(Time now) {
  const MutexLock lock(mu_);
  if (is_taken_ || is_silent_ || !form_.writer || now - since_ < kQuiet) return;
  if (has_head_ && now - last_write_ < std::min(form_.ping_every, kMaxPingEvery)) return;
  last_write_ = now;
  if (!has_head_) {
    writer_ = form_.writer();
    // Lines of JSON have no place for a word that is none of the reply's.
    is_silent_ = std::string_view(writer_->stream_type()) != kServerSentEvents;
    if (is_silent_) return;
    SendHead();
  }
  const double seconds = std::chrono::duration<double>(now - since_).count();
  reply_->Write(": loading " + form_.model + Printf(", %.0f s\n\n", std::floor(seconds)));
}

std::shared_ptr<HttpReply> ModelWait::reply() const {
  const MutexLock lock(mu_);
  if (!has_head_) return reply_;
  return std::make_shared<BegunReply>(reply_);
}

bool ModelWait::Fail(const ApiError& error) {
  const MutexLock lock(mu_);
  if (!has_head_) return false;
  reply_->Write(writer_->Fail(error));
  reply_->End();
  return true;
}

void ModelWait::set_ticket(ModelSource::Ticket ticket) {
  const MutexLock lock(mu_);
  ticket_ = ticket;
}

ModelSource::Ticket ModelWait::ticket() const {
  const MutexLock lock(mu_);
  return ticket_;
}

}  // namespace hearth
