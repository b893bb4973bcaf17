// SPDX-License-Identifier: Apache-2.0
// Whoever answers a conversation: a model in this process, or one behind a server. It keeps nothing
// of a conversation but what its cache holds, so that taking back and trying again cost little.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "text/chat_format.h"
#include "text/conversation.h"
namespace hearth {

// What becomes of reasoning on the way to the reader.
enum class ReasoningView : unsigned char { kShow, kFold, kHide };

// What /set changes. What is absent is left to the model, or to the server.
struct TalkSettings {
  std::optional<double> temperature, top_p, min_p;
  std::optional<int> top_k;
  std::optional<int> max_tokens;  // of a reply; 0: until the context is full
  std::optional<uint64_t> seed;
  std::optional<ReasoningEffort> effort;
  ReasoningView reasoning = ReasoningView::kFold;
};

enum class TurnEnd : unsigned char { kStop, kLength, kContext, kInterrupted };

struct TurnFigures {
  int num_prompt = 0, num_cached = 0, num_generated = 0;
  double first_token_s = 0, total_s = 0;  // since the message was sent
};

struct TurnResult {
  TurnEnd end = TurnEnd::kStop;
  Message message;  // the reply, as far as it came
  TurnFigures figures;
};

struct TurnListener {
  // The reply in whole characters, as it comes.
  std::function<void(ReplyEvent::Kind kind, const std::string& text)> hear;
  // Called some times a second while nothing comes.
  std::function<void()> wait;
};

// Thread: one; only the interrupt flag may be set from elsewhere.
class Answerer {
 public:
  virtual ~Answerer() = default;
  virtual std::string name() const = 0;   // the model's
  virtual std::string place() const = 0;  // "in this process", or the server's URL
  virtual int max_context() const = 0;    // 0: not known
  // kInvalid when the model has no such setting, or it makes no sense.
  virtual Status Check(const TalkSettings& settings) const = 0;
  // One reply to all that was said so far.
  virtual Result<TurnResult> Answer(const Conversation& conversation, const TalkSettings& settings,
                                    const TurnListener& listener,
                                    const std::atomic<bool>& interrupted) = 0;
};

// Where answerers come from, by the names that people give models.
class AnswererSource {
 public:
  virtual ~AnswererSource() = default;
  // Whether Open would find it; cheap.
  virtual Status Find(const std::string& name) = 0;
  virtual Result<std::unique_ptr<Answerer>> Open(const std::string& name) = 0;
};

// Adds one event of a reply to the message it becomes.
void AddToMessage(const ReplyEvent& event, Message& message);

}  // namespace hearth
