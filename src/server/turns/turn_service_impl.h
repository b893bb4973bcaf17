// SPDX-License-Identifier: Apache-2.0
// What is behind turn_service.h, for the files that it is written in.
#pragma once
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/access/account.h"
#include "server/access/encrypted_text.h"
#include "server/access/reply_origin.h"
#include "server/access/secrets.h"
#include "server/access/siv_seal.h"
#include "server/turns/flights.h"
#include "server/turns/model_wait.h"
#include "server/turns/turn_service.h"
#include "server/turns/workers.h"
namespace hearth {

struct TurnService::Impl : std::enable_shared_from_this<TurnService::Impl> {
  Impl(std::unique_ptr<ModelSource> own, ModelSource& s, const ServiceOptions& o, int num_writers)
      : own_source(std::move(own)),
        source(s),
        options(o),
        body_limits{.max_bytes = o.max_body_bytes, .max_depth = 64, .max_values = 200'000},
        readers({.max_queued = o.max_unread}),
        writers({.num_threads = num_writers, .max_queued = o.max_unread}),
        secrets(o.secrets ? *o.secrets : Secrets::Fresh()),
        event_seal(secrets.For<64>(Purpose::kEventIds)),
        domain_secret(secrets.For(Purpose::kCacheDomains)),
        journal(o.journal),
        house{writers, o.observer, o.ping_every} {
    if (journal == nullptr) journal = std::make_shared<ReplyJournal>();
    pinger = std::thread([this] { PingAll(); });
  }

  void PingAll();
  void PingOnce() HEARTH_REQUIRES(mu);
  void PingLive() HEARTH_REQUIRES(mu);
  // One request: `http` was read whole.
  struct Arrival {
    HttpRequest http;
    std::shared_ptr<HttpReply> reply;
    std::string id, traceparent, client;
    std::chrono::steady_clock::time_point at;
    std::shared_ptr<const Dialect> dialect;
    std::span<const Field> fields;  // of its route
    KeyLimits limits = {};
    std::shared_ptr<Flight> flight = nullptr;
    std::shared_ptr<RequestAccount> account = nullptr;  // who pays; null: nobody counts
    std::shared_ptr<ModelWait> wait = nullptr;          // its model had to be waited for
    std::string session_key = {};                       // see session_key.h; told in its answer
    // Of which reply it asks for the rest, when its path said so.
    std::optional<EventId> resumes = {};
  };
  // What was read of a request, until its model is there.
  struct Reading {
    DialectTurn read;
    std::vector<std::string> ignored;
    ReplyOrigin origin;  // of the reply: a new one, or that of the one which is asked for again
    TurnOutcome::Again again = TurnOutcome::Again::kNo;
    EventCursor seen;           // kResumed: what the client has
    std::string key_name = {};  // of its Idempotency-Key in the journal; empty: it has none
    JournalRecord so_far = {};  // of a reply that is asked for again
    std::shared_ptr<const EventNames> event_names = nullptr;
    bool has_name = false;  // its events may be asked for by its name
  };
  // What happens to a request while its model is loaded.
  struct Patience {
    // Makes the writer of its stream, which gets signs of life; null: none.
    std::function<std::unique_ptr<ReplyWriter>()> writer = {};
    // Where the reply of one goes that does not need its client any more; its stream begins at
    // once. Null: it needs it.
    std::function<ApiResult<std::shared_ptr<HttpReply>>(std::shared_ptr<HttpReply>)> detach = {};
    int64_t timeout_us = 0;  // the request's own; 0: none
  };
  std::shared_ptr<Arrival> NewArrival(HttpRequest http, std::shared_ptr<HttpReply> reply,
                                      std::shared_ptr<const Dialect> dialect,
                                      std::span<const Field> fields) const;
  // Null when the key has had enough, and was told so.
  std::shared_ptr<Arrival> Admit(HttpRequest http, std::shared_ptr<HttpReply> reply,
                                 std::shared_ptr<const Dialect> dialect,
                                 std::span<const Field> fields) const;
  // `work` is done by a reader; what it fails with is the answer.
  void Read(const std::shared_ptr<Arrival>& arrival, std::function<ApiStatus()> work);
  // Reads now, on this thread, unless the request is known to end processes.
  ApiStatus ReadNow(Arrival& arrival, const std::function<ApiStatus()>& work) const;
  HttpReply::Headers LimitHeaders(const Arrival& arrival) const;
  void Refuse(const Arrival& arrival, const ApiError& error) const;
  // The body as the table of its route knows it; `ignored` gets the names of what was left out.
  ApiResult<Json> Body(const Arrival& arrival, std::vector<std::string>& ignored) const;
  ApiStatus Start(const std::shared_ptr<Arrival>& arrival);
  ApiStatus CheckKeeping(const HttpRequest& http, Reading& reading);
  // `work` is done with the model, now or when it is loaded; what it fails with is the answer.
  using ModelWork = std::function<ApiStatus(const HeldModel& held)>;
  ApiStatus WithModel(const std::shared_ptr<Arrival>& arrival, const ModelAsk& ask,
                      Patience patience, const ModelWork& work);
  // Puts it among those who wait, before its model is asked for.
  ApiStatus BeginWait(const std::shared_ptr<Arrival>& arrival, const std::string& model,
                      Patience patience);
  Patience PatienceOf(const std::shared_ptr<Reading>& reading) const;
  // Those whose time is up, out of their models' lines.
  void EndLate();
  void GoOn(const std::shared_ptr<Arrival>& arrival, ApiResult<HeldModel> held,
            const ModelWork& work);
  ApiStatus Run(const Arrival& arrival, Reading& reading, const HeldModel& held);
  static Exchange::Form FormOf(const Arrival& arrival, const Reading& reading);
  // Which reply it is: a new one, the rest of one (Last-Event-ID), or one again (Idempotency-Key).
  ApiStatus FindOrigin(const Arrival& arrival, const Json& body, Reading& reading);
  ApiStatus FindStream(const Arrival& arrival, std::string_view last_event, Reading& reading) const;
  static ApiStatus GoOnAfter(const EventId& id, Reading& reading);
  ApiStatus FindKey(const Arrival& arrival, std::string_view key, Reading& reading);
  // The reply follows from its origin, this model and these prompts, or is refused.
  ApiStatus SettleOrigin(const Arrival& arrival, const ServedModel& model,
                         const std::vector<std::vector<Token>>& prompts, Reading& reading) const;
  // The events of a reply by its name, `GET PATH/ID?stream=true&starting_after=N`, when the journal
  // has its request: then this is that request, and what its client has. Else nothing.
  struct NamedReply {
    HttpRequest request;
    EventId resumes;
  };
  std::optional<NamedReply> NamedBy(const HttpRequest& http) const;
  ApiStatus StartNamed(const Arrival& arrival, NamedReply named);
  void NoteNamedPaths(const std::vector<DialectRoute>& routes);
  // One that goes on without its client is there already, waiting for its model perhaps: then the
  // client follows it.
  static ReplyFacts FactsOf(const Reading& reading, const std::string& model,
                            const std::string& fingerprint);
  static bool Rejoined(const Arrival& arrival, const Reading& reading);
  // Goes on after what was said of it, as far as that is known.
  void GoOnFrom(const Arrival& arrival, const ServedModel& model, const Reading& reading,
                std::vector<Request>& requests, Exchange::Form& form) const;
  ApiStatus Answer(const std::shared_ptr<Arrival>& arrival, const DialectRoute& route,
                   const TurnService& service);
  // Null: there is no limit to hold.
  ApiResult<std::shared_ptr<RateHold>> Charge(const Arrival& arrival, int num_replies,
                                              int num_prompt) const;
  ApiResult<std::vector<std::vector<Token>>> Prompts(const ServedModel& model,
                                                     const Arrival& arrival,
                                                     const TurnRequest& turn) const;
  // Fills `ids` with what was let in, also when it fails.
  ApiStatus SubmitAll(Engine& engine, const std::shared_ptr<Exchange>& exchange,
                      const std::vector<Request>& requests, int num_choices,
                      std::vector<SeqId>& ids);
  ApiStatus Submit(Engine& engine, const std::shared_ptr<Exchange>& exchange,
                   const std::vector<Request>& requests, int num_choices);

  const std::unique_ptr<ModelSource> own_source;  // null: `source` is somebody else's
  ModelSource& source;
  const ServiceOptions options;
  const JsonLimits body_limits;
  Readers readers;
  Workers writers;
  const Secrets secrets;
  const SivSeal event_seal;
  const CipherKey domain_secret;
  std::shared_ptr<ReplyJournal> journal;
  const ExchangeHouse house;
  mutable Mutex mu;
  CondVar stop;
  bool is_stopping HEARTH_GUARDED_BY(mu) = false;
  mutable std::list<std::shared_ptr<Exchange>> live HEARTH_GUARDED_BY(mu);
  std::list<std::shared_ptr<Arrival>> waiting HEARTH_GUARDED_BY(mu);  // for their models
  // Of turns whose replies have a route of their own, PATH/{id}, and their fields. Filled by
  // AddRoutes, before anybody asks.
  std::map<std::string, std::span<const Field>> named_paths;
  std::thread pinger;
};

}  // namespace hearth
