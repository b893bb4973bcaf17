// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/check.h"
#include "tiers/now.h"

namespace hearth {
namespace {

// What is on its way in both directions; the rest waits here, where it can be forgotten.
constexpr size_t kMaxAsked = 256;
constexpr size_t kMaxUnsent = 4 << 20;
// Who gives way sends one record after so long all the same, and looks so often whether it need
// not.
constexpr int64_t kMostPatienceUs = 200'000, kLookMs = 3;

std::string_view TextOf(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int64_t SizeOf(const RedisTask& task) { return static_cast<int64_t>(task.record.size()); }

}  // namespace

std::string RedisNameOf(const TierKey& key) {
  char name[64];
  std::snprintf(name, sizeof name, "hearth:1:%016llx%016llx:%d",
                static_cast<unsigned long long>(key.block.hi),
                static_cast<unsigned long long>(key.block.lo), key.group);
  return name;
}

RedisLink::RedisLink(RedisAddress address, RedisLinkOptions options,
                     std::function<void(RedisAnswer)> on_answer)
    : address_(std::move(address)),
      name_(address_.name()),
      options_(std::move(options)),
      on_answer_(std::move(on_answer)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      retry_us_(options_.first_retry_us) {
  HEARTH_CHECK(wake_fd_ >= 0);
  thread_ = std::thread([this] { Run(); });
}

RedisLink::~RedisLink() {
  {
    const MutexLock lock(mu_);
    stops_ = true;
  }
  eventfd_write(wake_fd_, 1);
  thread_.join();
  close(wake_fd_);
}

bool RedisLink::Push(RedisTask task) {
  if (!is_up_) return false;
  {
    const MutexLock lock(mu_);
    if (waiting_.size() >= options_.max_waiting ||
        waiting_bytes_ + SizeOf(task) > options_.max_waiting_bytes) {
      return false;
    }
    waiting_bytes_ += SizeOf(task);
    waiting_.push_back(std::move(task));
    ++num_unanswered_;
  }
  eventfd_write(wake_fd_, 1);
  return true;
}

void RedisLink::Forget(TransferId id) {
  const MutexLock lock(mu_);
  const auto found = std::ranges::find(waiting_, id, &RedisTask::id);
  if (found == waiting_.end()) return;
  waiting_bytes_ -= SizeOf(*found);
  waiting_.erase(found);
  --num_unanswered_;
}

void RedisLink::Say(const std::string& text) const {
  if (options_.say) options_.say("shared cache: " + name_ + ": " + text);
}

// A link that is down is down for everybody at once: nobody waits for a connection being made.
void RedisLink::Run() {
  while (true) {
    {
      const MutexLock lock(mu_);
      if (stops_) break;
    }
    if (!connection_ && !Reconnect()) continue;
    SendWaiting();
    WaitForWork();
    broken_ = connection_->Move([this](RedisReply reply) { OnReply(std::move(reply)); });
    if (broken_.ok() && IsStalled()) broken_ = Error(Code::kIo, "it does not answer");
    if (!broken_.ok()) OnDown(broken_);
  }
  FailAll();
}

bool RedisLink::Reconnect() {
  Result<std::unique_ptr<RedisConnection>> opened =
      RedisConnection::Open(address_, options_.connect);
  if (!opened.ok()) {
    OnDown(opened.status());
    return false;
  }
  connection_ = std::move(*opened);
  num_moved_ = connection_->num_moved();
  is_up_ = true;
  retry_us_ = options_.first_retry_us;
  last_error_.clear();
  Say("connected");
  return true;
}

void RedisLink::OnDown(const Status& status) {
  is_up_ = false;
  connection_.reset();
  FailAll();
  if (status.message() != last_error_) {
    last_error_ = status.message();
    Say(last_error_ + "; serving goes on without it");
  }
  Rest(retry_us_);
  retry_us_ = std::min(2 * retry_us_, options_.last_retry_us);
}

void RedisLink::Rest(int64_t us) {
  const int64_t until_us = NowUs() + us;
  while (true) {
    {
      const MutexLock lock(mu_);
      if (stops_) return;
    }
    const int64_t left_us = until_us - NowUs();
    if (left_us <= 0) return;
    pollfd entry{wake_fd_, POLLIN, 0};
    poll(&entry, 1, static_cast<int>(left_us / 1000 + 1));
    eventfd_t count = 0;
    eventfd_read(wake_fd_, &count);
  }
}

void RedisLink::FailAll() {
  std::deque<RedisTask> waiting;
  {
    const MutexLock lock(mu_);
    waiting.swap(waiting_);
    waiting_bytes_ = 0;
  }
  num_unanswered_ -= static_cast<int>(asked_.size() + waiting.size());
  for (Asked& asked : std::exchange(asked_, {})) {
    asked.answer.outcome = TierOutcome::kFailed;
    asked.answer.record = {};
    on_answer_(std::move(asked.answer));
  }
  for (RedisTask& task : waiting) {
    RedisAnswer answer;
    answer.kind = task.kind;
    answer.id = task.id;
    answer.keys = std::move(task.keys);
    on_answer_(std::move(answer));
  }
}

bool RedisLink::GivesWay() {
  if (!options_.gives_way || !options_.gives_way()) {
    gave_way_at_us_ = 0;
    return false;
  }
  const int64_t now_us = NowUs();
  if (gave_way_at_us_ == 0) gave_way_at_us_ = now_us;
  if (now_us - gave_way_at_us_ < kMostPatienceUs) return true;
  gave_way_at_us_ = now_us;
  return false;
}

void RedisLink::SendWaiting() {
  while (asked_.size() < kMaxAsked && connection_->num_unsent() < kMaxUnsent) {
    RedisTask task;
    {
      const MutexLock lock(mu_);
      if (waiting_.empty() || GivesWay()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= SizeOf(task);
    }
    SendTask(std::move(task));
  }
}

void RedisLink::SendTask(RedisTask task) {
  if (asked_.empty()) moved_at_us_ = NowUs();  // it had nothing to say until now
  Asked asked;
  asked.answer.kind = task.kind;
  asked.answer.id = task.id;
  asked.began_us = NowUs();
  asked.num_replies = task.keys.size();
  if (task.kind == RedisTask::Kind::kInfo) {
    connection_->Send({"INFO", "memory"});
    asked.num_replies = 1;
  }
  for (const TierKey& key : task.keys) {
    const std::string name = RedisNameOf(key);
    if (task.kind == RedisTask::Kind::kGet) {
      connection_->Send({"GET", name});
    } else if (task.kind == RedisTask::Kind::kAsk) {
      connection_->Send({"EXISTS", name});
    } else {
      const std::vector<std::byte> sealed = options_.seal->Seal(key, task.record);
      asked.answer.num_bytes = static_cast<int64_t>(sealed.size());
      connection_->Send({"SET", name, TextOf(sealed)});
    }
  }
  asked.answer.keys = std::move(task.keys);
  asked_.push_back(std::move(asked));
}

void RedisLink::OnReply(RedisReply reply) {
  if (asked_.empty()) return;  // it says what nobody asked
  Asked& asked = asked_.front();
  Take(std::move(reply), asked);
  if (--asked.num_replies > 0) return;
  asked.answer.took_us = NowUs() - asked.began_us;
  RedisAnswer answer = std::move(asked.answer);
  asked_.pop_front();
  --num_unanswered_;
  on_answer_(std::move(answer));
}

void RedisLink::Take(RedisReply reply, Asked& asked) {
  using Kind = RedisReply::Kind;
  RedisAnswer& answer = asked.answer;
  switch (answer.kind) {
    case RedisTask::Kind::kAsk:
      answer.outcome = TierOutcome::kDone;
      answer.has.push_back(reply.kind == Kind::kNumber && reply.number == 1);
      return;
    case RedisTask::Kind::kInfo:
      if (reply.kind != Kind::kBytes) return;  // it may be forbidden
      answer.outcome = TierOutcome::kDone;
      answer.record = TierBytes(reply.value.bytes, reply.value.memory);
      return;
    case RedisTask::Kind::kSet:
      if (reply.kind == Kind::kText) {
        answer.outcome = TierOutcome::kDone;
      } else if (reply.kind == Kind::kError && reply.text.starts_with("OOM")) {
        answer.outcome = TierOutcome::kFull;
      }
      return;
    case RedisTask::Kind::kGet:
      if (reply.kind == Kind::kNone) {
        answer.outcome = TierOutcome::kMissing;
      } else if (reply.kind == Kind::kBytes) {
        answer.num_bytes = static_cast<int64_t>(reply.value.bytes.size());
        const auto opened = options_.seal->OpenInPlace(answer.keys[0], reply.value.bytes);
        answer.is_corrupt = !opened.has_value();
        answer.outcome = opened ? TierOutcome::kDone : TierOutcome::kMissing;
        if (opened) answer.record = TierBytes(*opened, std::move(reply.value.memory));
      }
      return;
  }
}

void RedisLink::WaitForWork() {
  // A stall is noticed within a quarter of its time; without a question there is nothing to notice.
  int64_t most_ms = asked_.empty() ? 60'000 : std::max<int64_t>(1, options_.stall_us / 4000);
  if (gave_way_at_us_ != 0) most_ms = kLookMs;
  pollfd entries[2] = {{wake_fd_, POLLIN, 0}, {connection_->fd(), connection_->events(), 0}};
  poll(entries, 2, static_cast<int>(most_ms));
  eventfd_t count = 0;
  eventfd_read(wake_fd_, &count);
}

bool RedisLink::IsStalled() {
  if (connection_->num_moved() != num_moved_) {
    num_moved_ = connection_->num_moved();
    moved_at_us_ = NowUs();
  }
  return !asked_.empty() && NowUs() - moved_at_us_ > options_.stall_us;
}

}  // namespace hearth
