// SPDX-License-Identifier: Apache-2.0
// A conversation with a model in this process: renders turns, generates, reads the reply back.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/open_backend.h"
#include "base/result.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
namespace hearth {

struct ChatOptions {
  std::string model, backend = "cpu", date, effort;
  int max_tokens = 1024;
  int context = 0;                   // 0: what the model has, at most 16384
  std::optional<float> temperature;  // none: what suits the model
  int top_k = 0;
  float top_p = 1.0f, min_p = 0.0f;
  uint64_t seed = 0;
  CpuFlags cpu;
};

enum class ChatEnd : unsigned char { kStop, kLength, kContext, kInterrupted };

// Thread: one; only the interrupt flag may be set from elsewhere.
class Chat {
 public:
  static Result<std::unique_ptr<Chat>> Open(const ChatOptions& options);
  virtual ~Chat() = default;
  virtual void SetSystem(const std::string& text) = 0;
  // One turn. `show` gets the reply as whole characters, as they come.
  using Show = std::function<void(ReplyEvent::Kind kind, const std::string& text)>;
  virtual Result<ChatEnd> Say(const std::string& text, const Show& show,
                              const std::atomic<bool>& interrupted) = 0;
};

}  // namespace hearth
