// SPDX-License-Identifier: Apache-2.0
// What a dialect is: how its JSON becomes a TurnRequest, and how a reply becomes its JSON or its
// server-sent events. Everything between the two is shared (turn_service.h, exchange.h).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "http/message.h"
#include "server/turns/api_error.h"
#include "server/turns/turn.h"
#include "server/turns/turn_request.h"
namespace hearth {

// Sums over all choices; the prompt counts once per prompt.
struct TurnUsage {
  int prompt_tokens = 0, completion_tokens = 0;
  int cached_tokens = 0;     // of prompt_tokens
  int reasoning_tokens = 0;  // of completion_tokens
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
};

// How much of a prompt is read.
struct PromptProgress {
  int total = 0, cached = 0;
  int processed = 0;  // the cached ones included
};

// Writes one reply. The same calls are made whether the client wants a stream or not: without one
// the bytes are thrown away and Whole is sent, so that the two can never differ. What it returns
// are whole server-sent events, or nothing.
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
  // Thread: any, at any time.
  virtual std::string Ping() const { return ": ping\n\n"; }
  // For those who asked for it, while the prompt is read. Thread: as Ping.
  virtual std::string Progress(const PromptProgress&) const { return ""; }
  // Everything that was added, as the JSON of one body. After End.
  virtual std::string Whole(const TurnUsage& usage) = 0;
  // What did not work beside a reply that did: a word for headers and logs. After End.
  virtual std::string trouble() const { return ""; }
};

struct Dialect {
  std::string name;  // "chat": for metrics and logs
  // Fails with the field at fault. `http` is for headers and captures.
  std::function<ApiResult<TurnRequest>(Json body, const HttpRequest& http)> read;
  // Called when everything about the request is known to be right, before it is let in.
  std::function<std::unique_ptr<ReplyWriter>(const TurnRequest&, const ReplyFacts&)> write;
  std::function<std::string(const ApiError&)> describe_error;  // the JSON of a refusal
  // Where the reply is written instead of to its client, for one that goes on without; called
  // before `write`. Null: nowhere else.
  std::function<ApiResult<std::shared_ptr<HttpReply>>(const TurnRequest&, const ReplyFacts&,
                                                      std::shared_ptr<HttpReply>)>
      detach = {};
};

// "data: {…}\n\n", or with a name "event: name\ndata: {…}\n\n".
std::string AsEvent(const Json& json);
std::string AsEvent(const std::string& name, const Json& json);
// What chunks of OpenAI's forms say under `prompt_progress`.
Json ProgressAsJson(const PromptProgress& progress);

}  // namespace hearth
