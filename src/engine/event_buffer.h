// SPDX-License-Identifier: Apache-2.0
// The usual sink: a bounded buffer between the engine thread and one reader.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "engine/request.h"
namespace hearth {

// Thread: the engine writes, one reader reads, neither waits for the other while holding the lock.
class EventBuffer : public EventSink {
 public:
  // 1,024 tokens are some minutes of reading, in 8 KiB.
  explicit EventBuffer(int capacity = 1024) : capacity_(capacity) {}
  // Called on the engine thread after something was added; must not block. Set before submitting.
  void set_on_ready(std::function<void()> on_ready) { on_ready_ = std::move(on_ready); }

  // What has arrived, oldest first, without waiting.
  std::vector<TokenEvent> Take();
  // Waits for tokens or the end, at most `timeout_us`.
  std::vector<TokenEvent> Wait(int64_t timeout_us);
  // The end, once all tokens were taken and it has come.
  std::optional<RequestRecord> ended() const;

  // Of the prompt, when asked: all of it once there is a token or the end.
  std::vector<Logprobs> TakePromptLogprobs();
  std::vector<float> TakeEmbedding();

  int Room() const override;
  void OnToken(const TokenEvent& event) override;
  void OnPromptLogprobs(int first, std::span<const Logprobs> logprobs) override;
  void OnEmbedding(std::span<const float> embedding) override;
  void OnFinish(const RequestRecord& record) override;

 private:
  std::vector<TokenEvent> TakeLocked() HEARTH_REQUIRES(mutex_);
  const int capacity_;
  std::function<void()> on_ready_;
  mutable Mutex mutex_;
  CondVar arrived_;
  std::vector<TokenEvent> tokens_ HEARTH_GUARDED_BY(mutex_);
  std::vector<Logprobs> prompt_logprobs_ HEARTH_GUARDED_BY(mutex_);
  std::vector<float> embedding_ HEARTH_GUARDED_BY(mutex_);
  std::optional<RequestRecord> record_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth
