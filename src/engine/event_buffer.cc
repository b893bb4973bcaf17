// SPDX-License-Identifier: Apache-2.0
#include "engine/event_buffer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth {

std::vector<TokenEvent> EventBuffer::TakeLocked() { return std::exchange(tokens_, {}); }

std::vector<TokenEvent> EventBuffer::Take() {
  const std::lock_guard lock(mutex_);
  return TakeLocked();
}

std::vector<TokenEvent> EventBuffer::Wait(int64_t timeout_us) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, std::chrono::microseconds(timeout_us),
                    [&] { return !tokens_.empty() || record_.has_value(); });
  return TakeLocked();
}

std::optional<RequestRecord> EventBuffer::ended() const {
  const std::lock_guard lock(mutex_);
  if (!tokens_.empty()) return std::nullopt;
  return record_;
}

std::vector<Logprobs> EventBuffer::TakePromptLogprobs() {
  const std::lock_guard lock(mutex_);
  return std::exchange(prompt_logprobs_, {});
}

std::vector<float> EventBuffer::TakeEmbedding() {
  const std::lock_guard lock(mutex_);
  return std::exchange(embedding_, {});
}

void EventBuffer::OnPromptLogprobs(int, std::span<const Logprobs> logprobs) {
  const std::lock_guard lock(mutex_);
  prompt_logprobs_.insert(prompt_logprobs_.end(), logprobs.begin(), logprobs.end());
}

void EventBuffer::OnEmbedding(std::span<const float> embedding) {
  const std::lock_guard lock(mutex_);
  embedding_.assign(embedding.begin(), embedding.end());
}

int EventBuffer::Room() const {
  const std::lock_guard lock(mutex_);
  return std::max(0, capacity_ - static_cast<int>(tokens_.size()));
}

void EventBuffer::OnToken(const TokenEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    tokens_.push_back(event);
  }
  arrived_.notify_one();
  if (on_ready_) on_ready_();
}

void EventBuffer::OnFinish(const RequestRecord& record) {
  {
    const std::lock_guard lock(mutex_);
    record_ = record;
  }
  arrived_.notify_one();
  if (on_ready_) on_ready_();
}

}  // namespace hearth
