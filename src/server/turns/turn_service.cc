// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn_service.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <list>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "base/mix.h"
#include "base/mutex.h"
#include "base/thread_name.h"
#include "engine/clock.h"
#include "engine/replies.h"
#include "server/access/domain.h"
#include "server/turns/charges.h"
#include "server/turns/engine_requests.h"
#include "server/turns/one_model.h"
#include "server/turns/overload.h"
#include "server/turns/request_names.h"
#include "server/turns/session_key.h"
#include "server/turns/turn_limits.h"
#include "server/turns/turn_service_impl.h"
#include "server/turns/within_memory.h"

namespace hearth {
namespace {

using Steady = std::chrono::steady_clock;

// Two at least: what one client's reply costs (thousands of log-probabilities) is not added to
// everybody's. More than a few write faster than any engine says tokens.
int NumWriters() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 2, 8);
}

// The time that a request waited for its model counts.
ApiStatus CountWait(const ModelWait* wait, TurnRequest& turn) {
  if (wait == nullptr) return {};
  const std::optional<int64_t> left_us = wait->LeftUs(Steady::now());
  if (!left_us) return TimedOutLoading(turn.model);
  turn.timeout_us = *left_us;
  return {};
}

}  // namespace

void TurnService::Impl::PingAll() {
  NameThread("pings");
  const auto sleep = [this] {
    const MutexLock lock(mu);
    return stop.WaitFor(mu, std::chrono::milliseconds(500),
                        [this]() HEARTH_REQUIRES(mu) { return is_stopping; });
  };
  while (!sleep()) {
    try {
      EndLate();
      const MutexLock lock(mu);
      PingOnce();
    } catch (const std::bad_alloc&) {  // a sign of life less
    }
  }
}

void TurnService::Impl::PingOnce() {
  live.remove_if([](const std::shared_ptr<Exchange>& exchange) { return exchange->is_done(); });
  waiting.remove_if([](const auto& arrival) { return arrival->wait->is_taken(); });
  PingLive();
}

void TurnService::Impl::PingLive() {
  for (const auto& arrival : waiting) arrival->wait->Ping(Steady::now());
  std::unordered_map<const Engine*, std::shared_ptr<const EngineSnapshot>> seen;
  for (const auto& exchange : live) {
    const HeldModel held = exchange->held();
    if (held == nullptr) continue;
    auto& snapshot = seen[&held->engine];
    if (snapshot == nullptr) snapshot = held->engine.snapshot();
    exchange->Ping(Steady::now(), *snapshot);
  }
}

ApiResult<Json> TurnService::Impl::Body(const Arrival& arrival,
                                        std::vector<std::string>& ignored) const {
  Result<Json> body = ParseJson(arrival.http.body, body_limits);
  if (!body.ok()) {
    return NotJson(arrival.http.body, body.status());
  }
  if (body->object() == nullptr) {
    return FromStatus(Status(Code::kInvalid, "the body must be a JSON object"));
  }
  if (options.unknown_fields == UnknownFields::kWarn) ignored = DropUnknown(*body, arrival.fields);
  return *std::move(body);
}

HttpReply::Headers TurnService::Impl::LimitHeaders(const Arrival& arrival) const {
  if (options.limiter == nullptr || arrival.http.key_id.empty()) return {};
  return RateHeaders(options.limiter->StandingOf(arrival.http.key_id, SteadyClock().now_us()));
}

std::shared_ptr<TurnService::Impl::Arrival> TurnService::Impl::NewArrival(
    HttpRequest http, std::shared_ptr<HttpReply> reply, std::shared_ptr<const Dialect> dialect,
    std::span<const Field> fields) const {
  auto arrival = std::make_shared<Arrival>(Arrival{std::move(http), std::move(reply), NewId(), "",
                                                   "", Steady::now(), std::move(dialect), fields});
  arrival->traceparent = TraceParent(arrival->http);
  arrival->client = ClientOf(arrival->http);
  arrival->account = AccountOf(arrival->http);
  return arrival;
}

// On the connection's thread, before anybody parses the body: a key that floods keeps no reader
// from others.
std::shared_ptr<TurnService::Impl::Arrival> TurnService::Impl::Admit(
    HttpRequest http, std::shared_ptr<HttpReply> reply, std::shared_ptr<const Dialect> dialect,
    std::span<const Field> fields) const {
  auto arrival = NewArrival(std::move(http), std::move(reply), std::move(dialect), fields);
  const std::string& key = arrival->http.key_id;
  // Without keys everybody is the machine's owner.
  if (key.empty()) arrival->limits.max_priority = Priority::kUrgent;
  if (key.empty() || !options.limits_of) return arrival;
  arrival->limits = options.limits_of(key);
  const auto refusal = options.limiter->Arrive(key, arrival->limits, SteadyClock().now_us());
  if (!refusal) return arrival;
  Refuse(*arrival, TooMuch(*refusal));
  return nullptr;
}

void TurnService::Impl::Read(const std::shared_ptr<Arrival>& arrival,
                             std::function<ApiStatus()> work) {
  const bool taken =
      readers.Offer(arrival->client, arrival->http.body.size(), [this, arrival, work] {
        const auto read = [&] {
          const ApiStatus status = ReadNow(*arrival, work);
          if (!status.ok()) Refuse(*arrival, status.error());
        };
        WithinMemoryOr(read, [&] { arrival->reply->Abort(); });
      });
  if (!taken) Refuse(*arrival, TooManyUnread(options.overload_status));
}

ApiStatus TurnService::Impl::ReadNow(Arrival& arrival,
                                     const std::function<ApiStatus()>& work) const {
  return WithinMemory([&]() -> ApiStatus {
    HEARTH_TRY(CheckPresent(*arrival.reply));
    std::shared_ptr<Flight> flight;
    if (options.flights != nullptr) {
      flight = options.flights->Begin(arrival.http.key_id, arrival.http.path, arrival.http.body);
      if (flight == nullptr) return EndedProcesses();
      arrival.flight = flight;
    }
    const ApiStatus status = work();
    // What goes on is landed by its exchange. The arrival may be another reader's by now, if it
    // waited for its model.
    if (flight != nullptr && flight.use_count() <= 2) flight->Land();
    return status;
  });
}

void TurnService::Impl::Refuse(const Arrival& arrival, const ApiError& error) const {
  // Before the answer leaves: who has it finds it counted and logged.
  if (options.observer != nullptr) {
    TurnOutcome outcome;
    outcome.dialect = arrival.dialect->name();
    outcome.request_id = arrival.id;
    outcome.key_id = arrival.http.key_id;
    outcome.traceparent = arrival.traceparent;
    outcome.status = error.status;
    outcome.error_code = error.code.empty() ? error.type : error.code;
    outcome.seconds = std::chrono::duration<double>(Steady::now() - arrival.at).count();
    options.observer->OnEnd(outcome);
  }
  ApiError known = error;
  known.request_id = arrival.id;
  if (arrival.wait != nullptr && arrival.wait->Fail(known)) return;  // in its stream
  HttpReply::Headers headers = LimitHeaders(arrival);
  if (!arrival.traceparent.empty()) headers.push_back({"traceparent", arrival.traceparent});
  SendError(*arrival.reply, error, arrival.dialect->DescribeError(known), arrival.id,
            std::move(headers));
}

ApiStatus TurnService::Impl::SubmitAll(Engine& engine, const std::shared_ptr<Exchange>& exchange,
                                       const std::vector<Request>& requests, int num_choices,
                                       std::vector<SeqId>& ids) {
  // Taken before anything is submitted: what runs must be known, or nobody could end it.
  ids.reserve(requests.size() * static_cast<size_t>(num_choices));
  std::list<std::shared_ptr<Exchange>> entry{exchange};
  {
    // Before, because a server that goes must not miss who is being submitted.
    const MutexLock lock(mu);
    live.splice(live.end(), entry);
  }
  for (const Request& request : requests) {
    std::vector<std::shared_ptr<EventSink>> sinks;
    for (int i = 0; i < num_choices; ++i) {
      sinks.push_back(exchange->Sink(static_cast<int>(ids.size()) + i));
      if (options.watch) sinks.back() = options.watch(std::move(sinks.back()));
    }
    const std::vector<Admission> admissions = SubmitReplies(engine, request, sinks);
    if (!admissions.back().ok()) {
      return Overloaded(admissions.back(), engine.snapshot()->is_draining, options.overload_status);
    }
    for (const Admission& admission : admissions) ids.push_back(admission.id);
  }
  return {};
}

ApiStatus TurnService::Impl::Submit(Engine& engine, const std::shared_ptr<Exchange>& exchange,
                                    const std::vector<Request>& requests, int num_choices) {
  std::vector<SeqId> ids;
  const ApiStatus submitted =
      WithinMemory([&] { return SubmitAll(engine, exchange, requests, num_choices, ids); });
  if (!submitted.ok()) {
    exchange->Abandon();
    for (const SeqId id : ids) engine.Cancel(id);
    const MutexLock lock(mu);
    live.remove(exchange);  // at once: it holds a place of its key
    return submitted;
  }
  exchange->Begin(std::move(ids));
  return {};
}

ApiResult<std::shared_ptr<RateHold>> TurnService::Impl::Charge(const Arrival& arrival,
                                                               int num_replies,
                                                               int num_prompt) const {
  const std::string& key = arrival.http.key_id;
  if (key.empty() || options.limiter == nullptr) return std::shared_ptr<RateHold>();
  const RateLimiter::Asked asked{num_replies, num_prompt, SteadyClock().now_us()};
  if (const auto refusal = options.limiter->Start(key, asked)) return TooMuch(*refusal);
  try {
    return std::make_shared<RateHold>(*options.limiter, key, asked);
  } catch (const std::bad_alloc&) {
    options.limiter->Undo(key, asked);
    throw;
  }
}

// Schemas are held to their limits before anybody writes them into a prompt.
ApiResult<std::vector<std::vector<Token>>> TurnService::Impl::Prompts(
    const ServedModel& model, const Arrival& arrival, const TurnRequest& turn) const {
  HEARTH_TRY(CheckPresent(*arrival.reply));
  if (model.masks != nullptr && NeedsMask(turn)) {
    const Status schemas = ReplyMasks::Check(turn);
    if (!schemas.ok()) return MaskError(schemas, turn);
  }
  return PromptsOf(model, turn);
}

// How long a model stays concerns every tenant: with keys only an admin decides it, as with
// /models/unload. Clients send `keep_alive` with usual requests, which are answered without it.
ApiStatus TurnService::Impl::CheckKeeping(const HttpRequest& http, Reading& reading) {
  if (http.key_id.empty() || http.is_admin) return {};
  if (reading.read.unload_answer && source.CanUnload()) {
    return ApiError{
        403, "permission_error", "", "keep_alive", "an admin key is required to unload a model", 0,
        ""};
  }
  std::optional<double>& keep = reading.read.turn.keep_alive_s;
  if (keep && source.CanUnload()) reading.ignored.push_back("keep_alive");
  keep.reset();
  return {};
}

ApiStatus TurnService::Impl::Start(const std::shared_ptr<Arrival>& arrival) {
  const StageClock clock(arrival->account.get(), Stage::kRead);
  auto reading = std::make_shared<Reading>();
  HEARTH_ASSIGN(const Json body, Body(*arrival, reading->ignored));
  HEARTH_ASSIGN(reading->read, arrival->dialect->Read(body, arrival->http));
  arrival->session_key = SessionKeyOf(arrival->http, body);
  HEARTH_TRY(CheckKeeping(arrival->http, *reading));
  HEARTH_TRY(FindOrigin(*arrival, body, *reading));
  const TurnRequest& turn = reading->read.turn;
  if (reading->read.detach || turn.priority == Priority::kIdle) {
    HEARTH_TRY(source.Check(turn.model));
    HEARTH_TRY(CheckBackground(arrival->account.get()));
  }
  if (reading->read.unload_answer && source.CanUnload()) {
    HEARTH_TRY(source.Unload(turn.model));
    SendJson(*arrival->reply, *reading->read.unload_answer);
    return {};
  }
  if (Rejoined(*arrival, *reading)) return {};
  return WithModel(
      arrival, {turn.model, turn.keep_alive_s, arrival->client}, PatienceOf(reading),
      [this, arrival, reading](const HeldModel& held) { return Run(*arrival, *reading, held); });
}

ApiStatus TurnService::Impl::Run(const Arrival& arrival, Reading& reading, const HeldModel& held) {
  StageClock clock(arrival.account.get(), Stage::kRead);
  const ServedModel& model = held->model;
  DialectTurn& read = reading.read;
  TurnRequest& turn = read.turn;
  if (read.fit) HEARTH_TRY(read.fit(model, turn));
  if (read.answer) {
    SendJson(*arrival.reply, *read.answer);
    return {};
  }
  HEARTH_TRY(CountWait(arrival.wait.get(), turn));
  FillOpen(model.sampling, turn.sampling);
  std::string neutralised = NeutraliseVolatile(options.neutralise, turn.conversation);
  HEARTH_TRY(CheckVariables(model, options.unknown_fields, turn.conversation, reading.ignored));
  if (turn.plain_prompts.empty()) HEARTH_TRY(SettleEnd(turn));
  clock.Next(Stage::kRender);
  HEARTH_ASSIGN(std::vector<std::vector<Token>> tokens, Prompts(model, arrival, turn));
  if (turn.plain_prompts.empty()) {
    turn.start = model.format->StartOf(turn.conversation, tokens.front());
  }
  HEARTH_TRY(HoldToLimits({model.max_context, arrival.limits}, tokens, turn));
  HEARTH_TRY(SettleOrigin(arrival, model, tokens, reading));
  ReplyFacts facts = FactsOf(reading, model.name, model.fingerprint);
  // One that waited for its model has a job of its own by now.
  if (arrival.wait == nullptr && read.rejoin && read.rejoin(facts, arrival.reply)) return {};
  for (const auto& prompt : tokens) facts.num_prompt += static_cast<int>(prompt.size());
  if (turn.echoes) facts.echoes = EchoesOf(*model.tokenizer, turn.plain_prompts, tokens);
  HEARTH_TRY(ChargePrompt(arrival.account.get(), facts.num_prompt, turn.num_choices));
  HEARTH_TRY(CheckPresent(*arrival.reply));
  clock.Next(Stage::kMask);
  Result<std::vector<Request>> requests = RequestsFor(
      model, turn, std::move(tokens), DomainOf(arrival.http.key_id, turn.cache_salt, domain_secret),
      [seed = reading.origin.seed, i = uint64_t{0}]() mutable {
        return seed ^ (i++ * kGoldenRatio);
      });
  if (!requests.ok()) return MaskError(requests.status(), turn);
  clock.Next(Stage::kRead);
  HEARTH_ASSIGN(std::vector<Turn> turns, TurnsOf(model, turn, requests->size()));
  Exchange::Form form = FormOf(arrival, reading);
  form.neutralised = std::move(neutralised);
  GoOnFrom(arrival, model, reading, *requests, form);
  HEARTH_ASSIGN(form.hold, Charge(arrival, static_cast<int>(turns.size()), facts.num_prompt));
  HEARTH_TRY(CheckPresent(*arrival.reply));
  std::shared_ptr<HttpReply> reply = arrival.reply;
  // One that had to wait for its model has been detached since.
  if (read.detach && arrival.wait == nullptr) {
    HEARTH_ASSIGN(reply, read.detach(facts, reply));
  }
  auto exchange = std::make_shared<Exchange>(house, held, std::move(reply), std::move(turns),
                                             read.write(turn, facts), std::move(form));
  return Submit(held->engine, exchange, *requests, turn.num_choices);
}

TurnService::TurnService(Engine& engine, ServedModel model, const ServiceOptions& options) {
  auto one = std::make_unique<OneModel>(engine, std::move(model));
  ModelSource& source = *one;
  impl_ = std::make_shared<Impl>(std::move(one), source, options, NumWriters());
}

TurnService::TurnService(ModelSource& source, const ServiceOptions& options)
    : impl_(std::make_shared<Impl>(nullptr, source, options, NumWriters())) {}

TurnService::~TurnService() {
  std::list<std::shared_ptr<Impl::Arrival>> waiting;
  {
    const MutexLock lock(impl_->mu);
    waiting.swap(impl_->waiting);
  }
  for (const auto& arrival : waiting) {
    if (!arrival->wait->Take()) continue;
    impl_->source.Forget(arrival->wait->ticket());
    impl_->Refuse(*arrival, ShuttingDown());
  }
  impl_->readers.Stop();
  {
    const MutexLock lock(impl_->mu);
    impl_->is_stopping = true;
    for (const auto& exchange : impl_->live) exchange->Cancel();
  }
  impl_->stop.NotifyAll();
  impl_->pinger.join();
  // Sinks that the engine still holds would post to workers that are gone.
  WaitUntilDone(std::chrono::milliseconds(5'000));
}

void TurnService::AddRoutes(Router& router, const std::shared_ptr<const Dialect>& dialect) {
  const std::vector<DialectRoute> routes = dialect->routes();
  impl_->NoteNamedPaths(routes);
  for (const DialectRoute& route : routes) {
    HttpHandler handler = route.handler;
    if (handler && route.is_slow) {
      // The same turns among clients as for bodies, but no limit on requests: it asks for no reply.
      handler = [this, dialect, slow = route.handler](HttpRequest http,
                                                      std::shared_ptr<HttpReply> reply) {
        const auto arrival = impl_->NewArrival(std::move(http), std::move(reply), dialect, {});
        impl_->Read(arrival, [this, arrival, slow]() -> ApiStatus {
          const StageClock clock(arrival->account.get(), Stage::kStore);
          if (auto named = impl_->NamedBy(arrival->http)) {
            return impl_->StartNamed(*arrival, *std::move(named));
          }
          slow(arrival->http, arrival->reply);
          return {};
        });
      };
    }
    if (!handler && route.endpoint.method == "GET") {
      handler = [this, dialect, answer = route.answer](const HttpRequest& http,
                                                       const std::shared_ptr<HttpReply>& reply) {
        ApiResult<Json> said = answer(*this, JsonObject{}, http);
        if (said.ok()) return SendJson(*reply, *said);
        SendError(*reply, said.error(), dialect->DescribeError(said.error()), "");
      };
    } else if (!handler) {
      handler = [this, dialect, shared = std::make_shared<const DialectRoute>(route)](
                    HttpRequest http, std::shared_ptr<HttpReply> reply) {
        const auto arrival =
            impl_->Admit(std::move(http), std::move(reply), dialect, shared->endpoint.fields);
        if (arrival == nullptr) return;
        impl_->Read(arrival, [this, arrival, shared]() -> ApiStatus {
          const bool is_turn = !shared->answer && !shared->model_answer;
          return is_turn ? impl_->Start(arrival) : impl_->Answer(arrival, *shared, *this);
        });
      };
    }
    router.Add(route.endpoint.method, route.endpoint.path, route.endpoint.auth, std::move(handler),
               route.max_body_bytes);
  }
}

ApiResult<std::vector<Token>> TurnService::Render(const ServedModel& model,
                                                  TurnRequest request) const {
  NeutraliseVolatile(impl_->options.neutralise, request.conversation);
  std::vector<std::string> ignored;
  HEARTH_TRY(CheckVariables(model, impl_->options.unknown_fields, request.conversation, ignored));
  HEARTH_TRY(SettleEnd(request));
  HEARTH_ASSIGN(std::vector<Token> prompt,
                RenderPrompt(model, request.conversation, request.answer));
  return prompt;
}

ApiResult<std::vector<Token>> TurnService::Render(const ServedModel& model,
                                                  Conversation conversation,
                                                  const AnswerShape& answer) const {
  TurnRequest request;
  request.conversation = std::move(conversation);
  request.answer = answer;
  return Render(model, std::move(request));
}

ApiResult<int64_t> TurnService::CountTokens(const ServedModel& model, TurnRequest request) const {
  HEARTH_ASSIGN(std::vector<Token> prompt, Render(model, std::move(request)));
  return static_cast<int64_t>(prompt.size());
}

std::unordered_map<SeqId, SequenceName> TurnService::NamesOf(
    std::span<const SequenceRow> rows) const {
  std::unordered_map<SeqId, SequenceName> names;
  for (const SequenceRow& row : rows) names[row.id];
  const MutexLock lock(impl_->mu);
  for (const auto& exchange : impl_->live) exchange->Name(names);
  return names;
}

bool TurnService::WaitUntilDone(std::chrono::milliseconds bound) const {
  const Steady::time_point until = Steady::now() + bound;
  while (true) {
    {
      const MutexLock lock(impl_->mu);
      impl_->live.remove_if([](const auto& exchange) { return exchange->is_done(); });
      if (impl_->live.empty()) return true;
    }
    if (Steady::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace hearth
