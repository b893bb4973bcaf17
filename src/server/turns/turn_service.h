// SPDX-License-Identifier: Apache-2.0
// The way of a request through the house, the same for every dialect: read, render, check, submit,
// stream.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "http/router.h"
#include "server/access/secrets.h"
#include "server/turns/dialect.h"
#include "server/turns/exchange.h"
#include "server/turns/flights.h"
#include "server/turns/model_source.h"
#include "server/turns/readers.h"
#include "server/turns/reply_journal.h"
#include "server/turns/send.h"
#include "server/turns/served_model.h"
#include "server/turns/volatile_text.h"
namespace hearth {

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
  FlightBook* flights = nullptr;   // outlives the service; may be null
  Neutralise neutralise = Neutralise::kHeaders;
  UnknownFields unknown_fields = UnknownFields::kRefuse;
  // Servers with the same resume each other's streams and share what is cached beyond a process.
  // None: made here.
  std::optional<Secrets> secrets = {};
  std::shared_ptr<ReplyJournal> journal = nullptr;  // null: one in memory
  int overload_status = 429;  // of requests that a full server refuses; see overload.h
};

// Thread: any.
class TurnService {
 public:
  // One model, which is always there.
  TurnService(Engine& engine, ServedModel model, const ServiceOptions& options = {});
  // `source` outlives the service.
  TurnService(ModelSource& source, const ServiceOptions& options);
  ~TurnService();  // after the HTTP server that calls its routes; ends what still runs
  TurnService(const TurnService&) = delete;
  TurnService& operator=(const TurnService&) = delete;

  // All routes of a dialect. The service outlives the router.
  void AddRoutes(Router& router, const std::shared_ptr<const Dialect>& dialect);

  // A conversation as the tokens that a turn would begin with.
  // `answer` is shown to models whose format has a place for it.
  ApiResult<std::vector<Token>> Render(const ServedModel& model, Conversation conversation,
                                       const AnswerShape& answer = {}) const;
  ApiResult<std::vector<Token>> Render(const ServedModel& model, TurnRequest request) const;
  // How many those are, for a dialect's own way to count.
  ApiResult<int64_t> CountTokens(const ServedModel& model, TurnRequest request) const;
  // Model names are checked here, so that every dialect says the same. NAME and NAME:latest are
  // one.
  ApiStatus CheckModel(const std::string& name) const;
  // What is served, or could be.
  std::vector<ModelListing> models() const;
  // For those who run the server; see ModelSource.
  ApiStatus KeepModel(const std::string& name, std::optional<bool> pin,
                      std::optional<double> keep_alive_s) const;
  ApiStatus UnloadModel(const std::string& name) const;
  std::string version() const;  // of this program

  // Waits until every client has its last byte, at most so long. True when all have.
  bool WaitUntilDone(std::chrono::milliseconds bound) const;
  // Whose these sequences are, as far as they still run.
  std::unordered_map<SeqId, SequenceName> NamesOf(std::span<const SequenceRow> rows) const;

 private:
  struct Impl;
  // Shared with those who wait for a model, and may be told after the service has gone.
  std::shared_ptr<Impl> impl_;
};

}  // namespace hearth
