// SPDX-License-Identifier: Apache-2.0
#include "engine/event_buffer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth {

std::vector<TokenEvent> EventBuffer::TakeLocked() { return std::exchange(tokens_, {}); }

std::vector<TokenEvent> EventBuffer::Take() {
  const MutexLock lock(mutex_);
  return TakeLocked();
}

std::vector<TokenEvent> EventBuffer::Wait(int64_t timeout_us) {
  const MutexLock lock(mutex_);
  arrived_.WaitFor(mutex_, std::chrono::microseconds(timeout_us), [&]() HEARTH_REQUIRES(mutex_) {
    return !tokens_.empty() || record_.has_value();
  });
  return TakeLocked();
}

std::optional<RequestRecord> EventBuffer::ended() const {
  const MutexLock lock(mutex_);
  if (!tokens_.empty()) return std::nullopt;
  return record_;
}

std::vector<Logprobs> EventBuffer::TakePromptLogprobs() {
  const MutexLock lock(mutex_);
  return std::exchange(prompt_logprobs_, {});
}

std::vector<float> EventBuffer::TakeEmbedding() {
  const MutexLock lock(mutex_);
  return std::exchange(embedding_, {});
}

void EventBuffer::OnPromptLogprobs(int, std::span<const Logprobs> logprobs) {
  const MutexLock lock(mutex_);
  prompt_logprobs_.insert(prompt_logprobs_.end(), logprobs.begin(), logprobs.end());
}

void EventBuffer::OnEmbedding(std::span<const float> embedding) {
  const MutexLock lock(mutex_);
  embedding_.assign(embedding.begin(), embedding.end());
}

int EventBuffer::Room() const {
  const MutexLock lock(mutex_);
  return std::max(0, capacity_ - static_cast<int>(tokens_.size()));
}

void EventBuffer::OnToken(const TokenEvent& event) {
  {
    const MutexLock lock(mutex_);
    tokens_.push_back(event);
  }
  arrived_.NotifyOne();
  if (on_ready_) on_ready_();
}

void EventBuffer::OnFinish(const RequestRecord& record) {
  {
    const MutexLock lock(mutex_);
    record_ = record;
  }
  arrived_.NotifyOne();
  if (on_ready_) on_ready_();
}

}  // namespace hearth
