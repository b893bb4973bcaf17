// SPDX-License-Identifier: Apache-2.0
// The way of a request through the house, the same for every dialect: read, render, check, submit,
// stream. Routes hand it their dialect and their exchange.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "http/router.h"
#include "server/turns/exchange.h"
#include "server/turns/reply_masks.h"
#include "server/turns/reply_writer.h"
#include "server/turns/volatile_text.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
namespace hearth {

// What is served. Everything is borrowed and outlives the service.
struct ServedModel {
  std::string name;
  std::string fingerprint;  // of program and numerics: what replies are comparable within
  const Tokenizer* tokenizer = nullptr;
  const ChatFormat* format = nullptr;
  ReplyMasks* masks = nullptr;
  int max_context = 0;  // tokens of prompt and reply together that one request can have
  std::string date;     // what the model is told is today; see RenderOptions
};

// A text without a chat's form, as completions read and /tokenize counts it: with the model's first
// token, where it has one and `begins` is set.
std::vector<Token> PlainTokens(const Tokenizer& tokenizer, const std::string& text, bool begins);

struct ServiceOptions {
  size_t max_body_bytes = size_t{4} << 20;
  size_t max_unread = 1024;  // requests whose bodies wait to be read
  std::chrono::milliseconds ping_every{10'000};
  TurnObserver* observer = nullptr;  // outlives the service
  // Puts itself between the engine and every sink (ServerMetrics::Watch); may be empty.
  std::function<std::shared_ptr<EventSink>(std::shared_ptr<EventSink>)> watch;
  // What a key may have, asked for every request that came with one; may be empty: no limits.
  std::function<KeyLimits(const std::string& key_id)> limits_of;
  RateLimiter* limiter = nullptr;  // outlives the service; needed with limits_of
  Neutralise neutralise = Neutralise::kHeaders;
};

// Thread: any.
class TurnService {
 public:
  TurnService(Engine& engine, ServedModel model, const ServiceOptions& options = {});
  ~TurnService();  // after the HTTP server that calls its routes; ends what still runs
  TurnService(const TurnService&) = delete;
  TurnService& operator=(const TurnService&) = delete;

  // A route that reads requests in that dialect.
  void AddTurnRoute(Router& router, std::string pattern, Dialect dialect);
  // For routes that answer without a turn (counting tokens): `work` runs where bodies are read, and
  // what it returns is sent. `dialect` says how errors look.
  using Answer = std::function<ApiResult<Json>(Json body, const HttpRequest& http)>;
  void AddAnswerRoute(Router& router, std::string pattern, Dialect dialect, Answer work);

  // A conversation as the tokens that a turn would begin with.
  // `answer` is shown to models whose format has a place for it.
  ApiResult<std::vector<Token>> Render(Conversation conversation,
                                       const AnswerShape& answer = {}) const;
  // How many those are, for a dialect's own way to count; the model's name is checked.
  ApiResult<int64_t> CountTokens(TurnRequest request) const;
  // The prompts of a request as tokens, checked against the context: `context_length_exceeded`.
  ApiResult<std::vector<std::vector<Token>>> Prompts(const TurnRequest& request) const;
  // Model names are checked here, so that every dialect says the same.
  std::optional<ApiError> CheckModel(const std::string& name) const;

  // Waits until every client has its last byte, at most so long. True when all have.
  bool WaitUntilDone(std::chrono::milliseconds bound) const;
  const ServedModel& model() const;
  // Whose these sequences are, as far as they still run.
  std::unordered_map<SeqId, SequenceName> NamesOf(std::span<const SequenceRow> rows) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// {"error": ...} with Retry-After where there is one.
void SendError(HttpReply& reply, const ApiError& error, const std::string& body,
               const std::string& request_id, HttpReply::Headers headers = {});
void SendJson(HttpReply& reply, const Json& json);

}  // namespace hearth
