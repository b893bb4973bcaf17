// SPDX-License-Identifier: Apache-2.0
// One reply from tokens to what a client is told: thoughts, answer, tool calls; whole characters
// only; ended by the client's stop strings. Pure: no sockets, no engine.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "sampling/logprobs.h"
#include "text/chat_format.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"
namespace hearth {

struct SpelledLogprob {
  std::string bytes;  // of the token
  float logprob = 0;
  Token token = 0;
};
// What the model thought of one token, and what else it thought of.
struct AnswerLogprob {
  SpelledLogprob chosen;
  std::vector<SpelledLogprob> top;
  int rank = 0;  // of a prompt's token, from 1
};

struct Delta {
  ReplyEvent::Kind kind = ReplyEvent::Kind::kContent;
  std::string text;
  int call = 0;                              // which tool call, from 0
  std::vector<AnswerLogprob> logprobs = {};  // kContent, when asked for
};

// Every token is text: what /v1/completions reads with. `tokenizer` must outlive it.
std::unique_ptr<ReplyReader> NewPlainReader(const Tokenizer& tokenizer);

// Stop strings look at the answer only: neither thoughts nor calls are a client's text.
// Thread: one at a time. What the reader borrows, and the tokenizer, must outlive it.
class Turn {
 public:
  Turn(std::unique_ptr<ReplyReader> reader, StopStrings stops, const Tokenizer& tokenizer);
  // Adds what became certain, often nothing. Neighbours of a kind are joined. `logprobs` may be
  // null.
  void Feed(Token token, const Logprobs* logprobs, std::vector<Delta>& out);
  void Finish(std::vector<Delta>& out);
  AnswerLogprob Spell(const Logprobs& logprobs) const;
  // A stop string is complete: what follows is not told.
  bool is_stopped() const { return is_stopped_; }
  int found_stop() const { return stops_.found(); }
  int num_calls() const { return num_calls_; }
  // Fed until the end of the reply: what the engine said after a stop string is nobody's.
  int num_tokens() const { return num_tokens_; }
  int num_reasoning_tokens() const { return num_reasoning_tokens_; }

 private:
  void Take(std::vector<ReplyEvent>& events, std::vector<Delta>& out);
  void Flush(std::vector<Delta>& out);
  void Tell(std::string text, std::vector<Delta>& out);
  void Put(std::string text, std::vector<Delta>& out);

  std::unique_ptr<ReplyReader> reader_;
  StopStrings stops_;
  const Tokenizer* tokenizer_;
  Utf8Stream utf8_;
  ReplyEvent::Kind kind_ = ReplyEvent::Kind::kContent;
  std::vector<ReplyEvent> events_;
  std::vector<AnswerLogprob> logprobs_;  // of tokens whose text is still held back
  int num_calls_ = 0, num_tokens_ = 0, num_reasoning_tokens_ = 0;
  bool is_stopped_ = false;
};

}  // namespace hearth
