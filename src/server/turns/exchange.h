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
#include "server/access/account.h"
#include "server/access/rate_limiter.h"
#include "server/turns/dialect.h"
#include "server/turns/event_ids.h"
#include "server/turns/flights.h"
#include "server/turns/model_source.h"
#include "server/turns/reply_journal.h"
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
  std::string ignored_fields = {};  // names only, fit for a header
  int choices_per_prompt = 1;       // so many neighbours of `records` share a prompt
  // Whether this reply was asked for before, and how: the rest of a stream, or the same once more.
  enum class Again : unsigned char { kNo, kResumed, kReplayed };
  Again again = Again::kNo;
  // Tokens of it that were in the journal; and others that the client had and were computed again.
  int num_from_journal = 0, num_recomputed = 0;
  std::string model = {};  // that replied, by its own name; empty: none was reached
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
  Workers& workers;
  TurnObserver* observer = nullptr;  // may be null
  std::chrono::milliseconds ping_every{10'000};
};

// Thread: sinks are called on the engine's; Work runs on any worker, one at a time; the rest any.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Form {
    std::string request_id, key_id, traceparent;
    bool streams = false;
    std::vector<std::string> stops;
    int choices_per_prompt = 1;
    Time arrived;
    std::shared_ptr<const Dialect> dialect;
    std::shared_ptr<RateHold> hold = nullptr;  // on its key's limits; null: there are none
    std::string client = {};                   // whose turn it takes among the writers
    std::string mask_field = {};               // what is to blame when its mask fails
    bool wants_progress = false;
    std::string neutralised = {};  // what its prompt was freed of; see volatile_text.h
    std::string ignored_fields = {};
    bool has_generic_tools = false;                     // its tools were told as plain_tools.h says
    std::shared_ptr<Flight> flight = nullptr;           // landed at its end; may be null
    std::shared_ptr<RequestAccount> account = nullptr;  // who pays; null: nobody counts
    std::shared_ptr<const EventNames> event_names = nullptr;  // null: its events have no ids
    EventCursor seen = {};                                    // what the client has of them
    // Said before; the engine was told too. Of a reply with one choice.
    std::vector<Token> said = {};
    std::shared_ptr<JournalEntry> notes = nullptr;  // what is written down of it; null: nothing
    TurnOutcome::Again again = TurnOutcome::Again::kNo;
    std::string session_key = {};  // empty: none
  };
  // `held` is given back when nothing is left to do.
  Exchange(const ExchangeHouse& house, HeldModel held, std::shared_ptr<HttpReply> reply,
           std::vector<Turn> turns, std::unique_ptr<ReplyWriter> writer, Form form);

  // For the engine, one per choice, before Begin.
  std::shared_ptr<EventSink> Sink(int choice);
  // All choices were let in: the stream's head goes out at once, whatever the queue is like.
  void Begin(std::vector<SeqId> ids);
  // Its reply will be told by somebody else. The engine finds no room for what it may still say.
  void Abandon();
  // The same when there is no memory to say anything.
  void Cut();
  // The server goes, or nobody listens.
  void Cancel();
  // A sign of life for proxies and clients that give up on silence.
  void Ping(Time now, const EngineSnapshot& snapshot);
  // The model that it runs on; null once it is over.
  HeldModel held() const;
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
  void BeginReply();
  void Schedule() HEARTH_EXCLUDES(mu_);
  void Work();
  void WorkWithin();
  // There is no memory for what comes next: told if that can be, else cut.
  void RunOut();
  // What was asked of the choice's prompt, as bytes.
  std::string TellPrompt(int index);
  // What came of one choice, as bytes; true when it has ended.
  bool Advance(int index, std::vector<TokenEvent> tokens,
               const std::optional<RequestRecord>& record, std::string& bytes);
  std::string TellToken(int index, Token token, const Logprobs* logprobs);
  std::string TellDeltas(int index, const std::vector<Delta>& deltas);
  std::string TellSaid();
  void Note(const TokenEvent& event);
  void ChargeKept();
  void End(std::string bytes);
  void EndBadly(const RequestRecord& record, std::string bytes);
  // The last bytes: after them nobody works on this exchange again.
  void Close(int status, const std::string& error_code, std::string last_event,
             std::vector<HttpHeader> headers, std::string body);
  std::vector<HttpHeader> Headers() const;
  // A comment's line in a stream that has comments, else nothing.
  std::string Comment(const std::string& text) const;
  std::vector<HttpHeader> CacheHeaders() const HEARTH_EXCLUDES(mu_);

  mutable Mutex mu_;
  const ExchangeHouse house_;
  // Before the choices, whose readers look into the model's parts.
  HeldModel held_ HEARTH_GUARDED_BY(mu_);
  const std::shared_ptr<HttpReply> reply_;
  const std::unique_ptr<ReplyWriter> writer_;
  const Form form_;
  std::vector<SeqId> ids_;  // fixed by Begin
  // Of the worker, all of these.
  std::vector<Choice> choices_;
  int num_ended_ = 0;
  bool is_closing_ = false;
  size_t kept_bytes_ = 0;  // about what the writer holds for the end
  EventIds event_ids_;
  int num_cached_ = -1;  // of the prompt, when the reply first began; -1: unknown
  bool has_said_ = false;
  int num_recomputed_ = 0;

  std::vector<News> news_ HEARTH_GUARDED_BY(mu_);  // one for each of choices_
  bool is_scheduled_ HEARTH_GUARDED_BY(mu_) = false;
  bool has_begun_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_over_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_gone_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_cut_ HEARTH_GUARDED_BY(mu_) = false;  // its account's memory was needed
  bool is_abandoned_ HEARTH_GUARDED_BY(mu_) = false;
  Time last_write_ HEARTH_GUARDED_BY(mu_);
  int last_progress_ HEARTH_GUARDED_BY(mu_) = -1;
};

}  // namespace hearth
