// SPDX-License-Identifier: Apache-2.0
// What a client asked for, whether it was let in, and what it hears back.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/tier_miss.h"
#include "engine/token_mask.h"
#include "kv/kv_space.h"
#include "sampling/logprobs.h"
#include "sampling/sampling_params.h"
namespace hearth {

// Strict: work of a more urgent class goes first. Waiting makes every request more urgent in time.
enum class Priority : uint8_t { kUrgent, kNormal, kLow, kIdle };
inline constexpr int kNumPriorities = 4;

struct Request {
  std::vector<Token> prompt;  // at least one
  // What it has said already, in another life: it goes on after these, as one that was preempted
  // does. None of them ends it, and its mask has accepted them.
  std::vector<Token> said = {};
  SamplingParams sampling;  // a token that ends the sequence is the last one heard
  int max_tokens = 0;       // to generate; 0: as many as context and memory hold
  Priority priority = Priority::kNormal;
  KvDomain domain;               // whose fair share, and whose cached work
  int64_t timeout_us = 0;        // from submission to the last token; 0: none
  bool speculates = true;        // drafts may be tried; what it hears is the same either way
  std::vector<int> checkpoints;  // prompt positions that others will start from (a preamble's end)
  // What it may say; null: anything. The sequence's own, nobody else's: it is asked before every
  // token and hears every token. It alone says where the sequence stops: stop tokens that do not
  // finish the mask are tokens like others.
  std::shared_ptr<TokenMask> mask;
  // Its first Fill is known to take long: the sequence begins when that is done.
  bool mask_is_dear = false;
  // Which of several replies to one prompt this is: each has draws of its own.
  uint32_t choice = 0;
  // Only the prompt is computed: it says nothing and ends with kLength. max_tokens is not looked
  // at.
  bool prompt_only = false;
  // The mean of the prompt's hidden states is wanted (EventSink::OnEmbedding). With prompt_only.
  bool pools = false;
  // An earlier request with the same prompt, if any: this one waits until that prompt is computed
  // and finds it in the cache, instead of computing it at the same time. See engine/replies.h.
  SeqId follows{};
};

enum class Finish : uint8_t {
  kNone,        // not ended
  kStop,        // said one of its stop tokens
  kLength,      // max_tokens, or the end of the context
  kCancelled,   // the client asked
  kExpired,     // its time ran out
  kSlowReader,  // nobody took its tokens for too long
  kShutdown,    // the engine is going away
  kError,       // this request's own numbers or the step it was in went wrong
  kMask         // its mask could not say what may come next: what was asked for is to blame
};
inline constexpr size_t kNumFinishes = 9;
const char* NameOf(Finish finish);
const char* NameOf(Priority priority);

// The statistics of one request. Times are 0 for what did not happen.
struct RequestRecord {
  SeqId id{};
  KvDomain domain;
  Priority priority = Priority::kNormal;
  Finish finish = Finish::kNone;
  std::string detail;          // for kError and kMask: why, in a word or a sentence
  bool lacked_memory = false;  // kError: its step found none; it may be tried again
  int num_prompt = 0, num_generated = 0;
  int num_cached = 0;                   // prompt tokens that the first start found
  int num_loaded = 0;                   // of those, the ones that a tier brought
  std::vector<TierTokens> loaded_from;  // which part of it
  int64_t loading_us = 0;               // waited for a tier
  BlockKey cached_run;                  // the last block of the run they were found in
  KvMiss miss;                          // why not more
  TierMiss tier_miss;                   // why no tier brought it
  int64_t num_computed = 0;    // tokens put through the backend, again after preemption included
  int64_t num_recomputed = 0;  // of them, those computed before
  int num_drafted = 0;         // of them, those that were drafts
  int num_accepted = 0;        // of them, those that were what it said
  int num_preempted = 0;
  int64_t arrived_us = 0, started_us = 0, first_token_us = 0, ended_us = 0;  // engine time
  int64_t waited_us = 0;  // without blocks, all waits together
  int64_t paused_us = 0;  // held back because its reader was slow, or its mask
};

// Whether a request was let in, and if not, what to tell the client.
// kInvalid: never, as it is. kExhausted: not now; trying again after `retry_after_s` makes sense.
struct Admission {
  Status status;
  SeqId id{};                   // when let in
  double predicted_wait_s = 0;  // until its first token is computed, by today's rates
  double retry_after_s = 0;     // when kExhausted
  int queued_requests = 0;
  int64_t queued_tokens = 0;
  bool ok() const { return status.ok(); }
};

struct TokenEvent {
  Token token = 0;
  int index = 0;       // counts what the request generated
  int num_cached = 0;  // of its prompt, as in its record
  // When sampling.num_logprobs asks: of the model, before masks, penalties and temperature.
  std::shared_ptr<const Logprobs> logprobs = nullptr;
};

// Where a request's tokens go. Thread: called on the engine thread; must not block. OnFinish comes
// exactly once, after the last token, and is always taken.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // How many tokens it takes right now. At 0 the sequence is paused until there is room again.
  virtual int Room() const = 0;
  virtual void OnToken(const TokenEvent& event) = 0;
  // When sampling.num_prompt_logprobs asks, before the first token: of the prompt's tokens from
  // `first` on, the likeliest at each place and the one that stands there. Piece by piece in order,
  // from 1 on: of the first token nothing was predicted.
  virtual void OnPromptLogprobs(int /*first*/, std::span<const Logprobs> /*logprobs*/) {}
  // When the request pools, once, before its end: of length 1, unless all of it is 0.
  virtual void OnEmbedding(std::span<const float> /*embedding*/) {}
  virtual void OnFinish(const RequestRecord& record) = 0;
};

}  // namespace hearth
