// SPDX-License-Identifier: Apache-2.0
// A model with weights behind the engine, for generate_replies: what it writes at temperature 2
// under a mask. The engine asks the mask, beside the real backend's steps.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/open_engine.h"
#include "app/open_model.h"
#include "engine/event_buffer.h"
#include "testing/random_reply.h"
#include "text/tokenizer.h"
namespace hearth::testing {

class EngineModel {
 public:
  static constexpr int kInFlight = 64;

  static Result<std::unique_ptr<EngineModel>> Open(const std::string& path,
                                                   const Tokenizer& tokenizer,
                                                   std::vector<Token> stops) {
    HEARTH_ASSIGN(Model model, OpenModelFor(path, "cpu"));
    EngineFlags flags;
    flags.hardware.num_threads = 1;  // two processes share the machine
    flags.kv_bytes = int64_t{128} << 20;
    flags.max_sequences = kInFlight;
    HEARTH_ASSIGN(std::unique_ptr<Engine> engine, OpenEngine(model, flags));
    return std::unique_ptr<EngineModel>(
        new EngineModel(std::move(model), std::move(engine), tokenizer, std::move(stops)));
  }

  struct Pending {
    std::shared_ptr<EventBuffer> events;
    std::shared_ptr<TokenMask> mask;
    std::string refused;
  };
  // Weights of noise rarely close what they opened, so the request biases what ends strings,
  // objects and replies, as a client could, the more the higher `haste` is. Bias cannot make the
  // mask allow anything.
  Pending Begin(std::shared_ptr<TokenMask> mask, uint64_t seed, float haste, int max_tokens) {
    Request request;
    tokenizer_.Encode("? " + std::to_string(seed), request.prompt);
    request.sampling.temperature = 2;
    request.sampling.seed = seed;
    request.sampling.stop_tokens = stops_;
    for (const Token token : closers_) {
      // Else half of the parallel calls would be followed by another one.
      const float less = token == message_end_ ? 2 : 0;
      request.sampling.logit_bias.push_back({token, haste - less});
    }
    request.max_tokens = max_tokens;
    request.mask = mask;
    Pending pending{std::make_shared<EventBuffer>(max_tokens + 1), std::move(mask), ""};
    const Admission admission = engine_->Submit(std::move(request), pending.events);
    if (!admission.ok()) pending.refused = admission.status.message();
    return pending;
  }

  // Waits for the end. What ends by length is not finished and no error.
  RandomReply End(Pending pending) const {
    RandomReply reply;
    reply.error = pending.refused;
    while (reply.error.empty() && !pending.events->ended()) {
      for (const TokenEvent& event : pending.events->Wait(1'000'000)) {
        reply.tokens.push_back(event.token);
      }
    }
    if (!reply.error.empty()) return reply;
    const RequestRecord record = *pending.events->ended();
    reply.is_finished = record.finish == Finish::kStop;
    if (record.finish == Finish::kStop && !pending.mask->is_finished()) {
      reply.error = "stopped before the mask was finished";
    } else if (record.finish != Finish::kStop && record.finish != Finish::kLength) {
      reply.error = std::string(NameOf(record.finish)) + ": " + record.detail;
    }
    return reply;
  }

  std::shared_ptr<const EngineSnapshot> snapshot() const { return engine_->snapshot(); }

 private:
  EngineModel(Model model, std::unique_ptr<Engine> engine, const Tokenizer& tokenizer,
              std::vector<Token> stops)
      : model_(std::move(model)),
        engine_(std::move(engine)),
        tokenizer_(tokenizer),
        stops_(std::move(stops)),
        closers_(stops_),
        message_end_(tokenizer.Special("<|end|>").value_or(-1)) {
    constexpr std::array<std::string_view, 11> kClosers = {"\"", "\"}", "\"]", "\",", "\":", "}",
                                                           "]",  "}}",  "]}",  "}]",  "\"}}"};
    for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
      if (tokenizer.IsSpecial(token)) continue;
      const std::string_view bytes = tokenizer.Bytes(token);
      if (std::find(kClosers.begin(), kClosers.end(), bytes) != kClosers.end()) {
        closers_.push_back(token);
      }
    }
  }

  Model model_;  // the backend borrows its weights
  std::unique_ptr<Engine> engine_;
  const Tokenizer& tokenizer_;
  std::vector<Token> stops_, closers_;
  const Token message_end_;  // harmony's; -1: there is none
};

}  // namespace hearth::testing
