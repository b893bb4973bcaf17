// SPDX-License-Identifier: Apache-2.0
// How a reply becomes a dialect's JSON or its server-sent events, and what a writer is told.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/turns/api_error.h"
#include "server/turns/event_ids.h"
#include "server/turns/turn.h"
namespace hearth {

// Sums over all choices; the prompt counts once per prompt.
struct TurnUsage {
  int prompt_tokens = 0, completion_tokens = 0;
  int cached_tokens = 0;     // of prompt_tokens
  int reasoning_tokens = 0;  // of completion_tokens
  int64_t total_us = 0;      // from the request's arrival
  // Of the first reply: its prompt from its start to the first token, and from there to its end.
  int64_t prompt_us = 0, reply_us = 0;
};

struct ChoiceEnd {
  enum class Why : unsigned char { kEnd, kLength, kStopString, kToolCalls };
  Why why = Why::kEnd;
  std::string stop_string;  // kStopString: which
};

// A prompt that is part of the reply: the bytes of its tokens, of which the first `num_hidden` are
// none of the client's text.
struct EchoedPrompt {
  std::vector<std::string> pieces;
  size_t num_hidden = 0;
};

// What a writer may want to repeat. `id` is bare hexadecimal, unguessable; dialects put their own
// prefix before it.
struct ReplyFacts {
  std::string id, model, fingerprint;
  int64_t created_s = 0;
  int num_prompt = 0;                     // tokens of all prompts
  std::vector<EchoedPrompt> echoes = {};  // one per prompt, when the reply begins with it
  // For dialects whose events go another way than the exchange's (see event_ids.h).
  std::shared_ptr<const EventNames> event_names = nullptr;
  EventCursor seen = {};
};

// How much of a prompt is read.
struct PromptProgress {
  int total = 0, cached = 0;
  int processed = 0;  // the cached ones included
};

inline constexpr const char* kServerSentEvents = "text/event-stream";

// Writes one reply. The same calls are made whether the client wants a stream or not: without one
// the bytes are thrown away and Whole is sent, so that the two can never differ. What it returns
// are whole server-sent events (or whole pieces of what its stream is), or nothing.
// Thread: one at a time.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;
  virtual std::string Begin() = 0;  // the request was let in
  // Once for each choice, before anything else of it: what the model thought of its prompt's tokens
  // from the second on, when that was asked for.
  virtual std::string AddPrompt(int /*choice*/, const std::vector<AnswerLogprob>& /*prompt*/) {
    return "";
  }
  virtual void AddEmbedding(int /*choice*/, std::vector<float> /*embedding*/) {}
  virtual std::string Add(int choice, const Delta& delta) = 0;
  virtual std::string EndChoice(int choice, const ChoiceEnd& end) = 0;
  virtual std::string End(const TurnUsage& usage) = 0;  // after the last EndChoice
  // The stream ends here and is not whole. Nothing follows.
  virtual std::string Fail(const ApiError& error) = 0;
  // What its stream is. Comments, which only server-sent events have, are left out of others.
  virtual const char* stream_type() const { return kServerSentEvents; }
  // Thread: any, at any time.
  virtual std::string Ping() const { return ": ping\n\n"; }
  // For those who asked for it, while the prompt is read. Thread: as Ping.
  virtual std::string Progress(const PromptProgress&) const { return ""; }
  // Whether a stream's end repeats what was added, so that all of it is kept until then.
  virtual bool keeps_stream() const { return false; }
  // Everything that was added, as the JSON of one body. After End.
  virtual std::string Whole(const TurnUsage& usage) = 0;
  // What did not work beside a reply that did: a word for headers and logs. After End.
  virtual std::string trouble() const { return ""; }
};

}  // namespace hearth
