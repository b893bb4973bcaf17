// SPDX-License-Identifier: Apache-2.0
// One request between the engine and its client: tokens of its choices become deltas, deltas the
// dialect's bytes; a client that goes takes its work along.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"
#include "http/message.h"
#include "server/access/rate_limiter.h"
#include "server/turns/reply_writer.h"
#include "server/turns/turn.h"
#include "server/turns/workers.h"
namespace hearth {

// What became of one request, for metrics and logs. Holds no text of anybody.
struct TurnOutcome {
  std::string dialect, request_id, key_id, traceparent;
  int status = 200;
  std::string error_code;  // empty: none
  bool streams = false;
  std::vector<RequestRecord> records;  // one per choice; none when it was not let in
  int num_reasoning_tokens = 0, num_calls = 0;
  double seconds = 0;  // from its head to the last byte handed over
  std::string neutralised = {};
};

// Thread: any; must not block.
class TurnObserver {
 public:
  virtual ~TurnObserver() = default;
  virtual void OnEnd(const TurnOutcome& outcome) = 0;
};

// Whose a sequence in the engine is. Holds no text of anybody.
struct SequenceName {
  std::string request_id, key_id, dialect;
};

// Where exchanges live. All of it outlives them.
struct ExchangeHouse {
  Engine& engine;
  Workers& workers;
  TurnObserver* observer = nullptr;  // may be null
  std::chrono::milliseconds ping_every{10'000};
};

// Thread: sinks are called on the engine's; Work runs on a worker, one at a time; the rest any.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Form {
    std::string dialect, request_id, key_id, traceparent;
    bool streams = false;
    std::vector<std::string> stops;
    int choices_per_prompt = 1;
    Time arrived;
    std::function<std::string(const ApiError&)> describe_error;
    std::shared_ptr<RateHold> hold = nullptr;  // on its key's limits; null: there are none
    std::string mask_field = {};               // what is to blame when its mask fails
    bool wants_progress = false;
    std::string neutralised = {};  // what its prompt was freed of; see volatile_text.h
  };
  Exchange(const ExchangeHouse& house, std::shared_ptr<HttpReply> reply, std::vector<Turn> turns,
           std::unique_ptr<ReplyWriter> writer, Form form);

  // For the engine, one per choice, before Begin.
  std::shared_ptr<EventSink> Sink(int choice);
  // All choices were let in: the stream's head goes out at once, whatever the queue is like.
  void Begin(std::vector<SeqId> ids);
  // The server goes, or nobody listens.
  void Cancel();
  // A sign of life for proxies and clients that give up on silence.
  void Ping(Time now, const EngineSnapshot& snapshot);
  // Nothing is left to do, and the client has taken every byte or is gone.
  bool is_done() const;
  // Fills in those of `names` that are this exchange's.
  void Name(std::unordered_map<SeqId, SequenceName>& names) const;

 private:
  friend class ChoiceSink;
  // More than a client reads in minutes; the engine pauses the sequence there.
  static constexpr size_t kMaxUnsentBytes = size_t{256} << 10;
  static constexpr int kMaxPending = 1024;

  struct Choice {
    explicit Choice(Turn t) : turn(std::move(t)) {}
    Turn turn;
    bool is_ended = false;
    bool has_prompt = false;  // its prompt was handed to the writer
  };
  // What the engine has told of a choice.
  struct News {
    std::vector<TokenEvent> pending;
    std::vector<Logprobs> prompt;  // complete before the first token
    std::vector<float> embedding;  // there before the end
    std::optional<RequestRecord> record;
  };

  int Room(int choice) const;
  void OnToken(int choice, const TokenEvent& event);
  void OnPromptLogprobs(int choice, std::span<const Logprobs> logprobs);
  void OnEmbedding(int choice, std::span<const float> embedding);
  void OnFinish(int choice, const RequestRecord& record);
  void Schedule() HEARTH_EXCLUDES(mu_);
  void Work();
  // What was asked of the choice's prompt, as bytes.
  std::string TellPrompt(int index);
  // What came of one choice, as bytes; true when it has ended.
  bool Advance(int index, std::vector<TokenEvent> tokens,
               const std::optional<RequestRecord>& record, std::string& bytes);
  void End(std::string bytes);
  void EndBadly(const RequestRecord& record, std::string bytes);
  // The last bytes: after them nobody works on this exchange again.
  void Close(int status, const std::string& error_code, std::string last_event,
             std::vector<HttpHeader> headers, std::string body);
  std::vector<HttpHeader> Headers() const;
  std::vector<HttpHeader> CacheHeaders() const HEARTH_EXCLUDES(mu_);

  const ExchangeHouse house_;
  const std::shared_ptr<HttpReply> reply_;
  const std::unique_ptr<ReplyWriter> writer_;
  const Form form_;
  std::vector<SeqId> ids_;  // fixed by Begin
  // Of the worker, both.
  std::vector<Choice> choices_;
  int num_ended_ = 0;

  mutable Mutex mu_;
  std::vector<News> news_ HEARTH_GUARDED_BY(mu_);  // one for each of choices_
  bool is_scheduled_ HEARTH_GUARDED_BY(mu_) = false;
  bool has_begun_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_over_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_gone_ HEARTH_GUARDED_BY(mu_) = false;
  Time last_write_ HEARTH_GUARDED_BY(mu_);
  int last_progress_ HEARTH_GUARDED_BY(mu_) = -1;
};

}  // namespace hearth
