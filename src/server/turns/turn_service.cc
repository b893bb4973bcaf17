// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn_service.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <list>
#include <random>
#include <thread>
#include <utility>

#include "base/mix.h"
#include "base/mutex.h"
#include "engine/clock.h"
#include "engine/replies.h"
#include "server/access/domain.h"
#include "server/turns/turn_limits.h"

namespace hearth {
namespace {

using Steady = std::chrono::steady_clock;

// The engine's answer, in the words of HTTP.
ApiError FromAdmission(const Admission& admission, bool is_draining) {
  ApiError error = FromStatus(admission.status);
  error.retry_after_s = admission.retry_after_s;
  if (is_draining && error.status == 429) {
    error.status = 503;
    error.type = "server_error";
    error.code = "shutting_down";
  }
  return error;
}

ApiError TooManyUnread() {
  ApiError error = FromStatus(Status(Code::kExhausted, "too many requests wait to be read"));
  error.retry_after_s = 1;
  return error;
}

// Unguessable, so that one client cannot name another's reply.
std::string NewId() {
  std::random_device random;
  return Printf("%08x%08x%08x", random(), random(), random());
}

// Only what the standard says a traceparent is goes on to logs and answers.
std::string TraceParent(const HttpRequest& http) {
  const std::string_view given = http.header("traceparent");
  const bool is_plain =
      given.size() == 55 && given.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
  return is_plain ? std::string(given) : "";
}

Result<std::vector<Token>> Rendered(const ServedModel& model, const Conversation& conversation,
                                    const AnswerShape& shape) {
  const AnswerFormat answer{shape.name, shape.description, shape.schema};
  const bool is_shown = shape.kind == AnswerShape::Kind::kSchema && !shape.name.empty();
  return model.format->Render(conversation,
                              {.date = model.date, .answer = is_shown ? &answer : nullptr});
}

std::vector<EchoedPrompt> Echoes(const std::vector<PlainPrompt>& given,
                                 const std::vector<std::vector<Token>>& prompts,
                                 const Tokenizer& tokenizer) {
  std::vector<EchoedPrompt> echoes;
  for (size_t i = 0; i < prompts.size(); ++i) {
    EchoedPrompt echo;
    for (const Token token : prompts[i]) echo.pieces.emplace_back(tokenizer.Bytes(token));
    const TokenizerTraits& traits = tokenizer.traits();
    const bool is_text = std::holds_alternative<std::string>(given[i]);
    echo.num_hidden = is_text && traits.add_bos && traits.bos ? 1 : 0;
    echoes.push_back(std::move(echo));
  }
  return echoes;
}

}  // namespace

struct TurnService::Impl {
  Impl(Engine& e, ServedModel m, const ServiceOptions& o)
      : engine(e),
        model(std::move(m)),
        options(o),
        body_limits{.max_bytes = o.max_body_bytes, .max_depth = 64, .max_values = 200'000},
        readers(1, o.max_unread),
        writers(1, o.max_unread),
        house{engine, writers, o.observer, o.ping_every} {
    std::random_device random;
    nonce = (uint64_t{random()} << 32) | random();
    pinger = std::thread([this] { PingAll(); });
  }

  void PingAll();
  // One request: `http` was read whole.
  struct Arrival {
    HttpRequest http;
    std::shared_ptr<HttpReply> reply;
    std::string id, traceparent;
    Steady::time_point at;
    KeyLimits limits;
  };
  // Null when the key has had enough, and was told so.
  std::shared_ptr<Arrival> Admit(HttpRequest http, std::shared_ptr<HttpReply> reply,
                                 const Dialect& dialect) const;
  HttpReply::Headers LimitHeaders(const Arrival& arrival) const;
  void Refuse(const Arrival& arrival, const Dialect& dialect, const ApiError& error) const;
  ApiResult<Json> Body(const HttpRequest& http) const;
  std::optional<ApiError> Start(const Arrival& arrival, const Dialect& dialect,
                                const TurnService& service);
  std::optional<ApiError> Charge(const Arrival& arrival, int num_replies, int num_prompt,
                                 std::shared_ptr<RateHold>& hold) const;
  Result<std::vector<Request>> Requests(const TurnRequest& turn,
                                        std::vector<std::vector<Token>> prompts,
                                        const KvDomain& domain);
  std::optional<ApiError> Submit(const std::shared_ptr<Exchange>& exchange,
                                 const std::vector<Request>& requests, int num_choices);

  Engine& engine;
  const ServedModel model;
  const ServiceOptions options;
  const JsonLimits body_limits;
  uint64_t nonce = 0;
  std::atomic<uint64_t> counter{0};
  Workers readers, writers;
  const ExchangeHouse house;
  mutable Mutex mu;
  CondVar stop;
  bool is_stopping HEARTH_GUARDED_BY(mu) = false;
  mutable std::list<std::shared_ptr<Exchange>> live HEARTH_GUARDED_BY(mu);
  std::thread pinger;
};

void TurnService::Impl::PingAll() {
  const MutexLock lock(mu);
  while (!stop.WaitFor(mu, std::chrono::milliseconds(500),
                       [this]() HEARTH_REQUIRES(mu) { return is_stopping; })) {
    live.remove_if([](const std::shared_ptr<Exchange>& exchange) { return exchange->is_done(); });
    const auto snapshot = engine.snapshot();
    for (const auto& exchange : live) exchange->Ping(Steady::now(), *snapshot);
  }
}

ApiResult<Json> TurnService::Impl::Body(const HttpRequest& http) const {
  Result<Json> body = ParseJson(http.body, body_limits);
  if (!body.ok()) {
    ApiError error = FromStatus(Status(Code::kInvalid, "the body: " + body.status().message()));
    error.code = "invalid_json";
    return error;
  }
  if (body->object() == nullptr) {
    return FromStatus(Status(Code::kInvalid, "the body must be a JSON object"));
  }
  return *std::move(body);
}

HttpReply::Headers TurnService::Impl::LimitHeaders(const Arrival& arrival) const {
  if (options.limiter == nullptr || arrival.http.key_id.empty()) return {};
  return RateHeaders(options.limiter->StandingOf(arrival.http.key_id, SteadyClock().now_us()));
}

// On the connection's thread, before anybody parses the body: a key that floods keeps no reader
// from others.
std::shared_ptr<TurnService::Impl::Arrival> TurnService::Impl::Admit(
    HttpRequest http, std::shared_ptr<HttpReply> reply, const Dialect& dialect) const {
  auto arrival = std::make_shared<Arrival>(
      Arrival{std::move(http), std::move(reply), NewId(), "", Steady::now(), {}});
  arrival->traceparent = TraceParent(arrival->http);
  const std::string& key = arrival->http.key_id;
  // Without keys everybody is the machine's owner.
  if (key.empty()) arrival->limits.max_priority = Priority::kUrgent;
  if (key.empty() || !options.limits_of) return arrival;
  arrival->limits = options.limits_of(key);
  const auto refusal = options.limiter->Arrive(key, arrival->limits, SteadyClock().now_us());
  if (!refusal) return arrival;
  Refuse(*arrival, dialect, TooMuch(*refusal));
  return nullptr;
}

void TurnService::Impl::Refuse(const Arrival& arrival, const Dialect& dialect,
                               const ApiError& error) const {
  ApiError known = error;
  known.request_id = arrival.id;
  HttpReply::Headers headers = LimitHeaders(arrival);
  if (!arrival.traceparent.empty()) headers.push_back({"traceparent", arrival.traceparent});
  SendError(*arrival.reply, error, dialect.describe_error(known), arrival.id, std::move(headers));
  if (options.observer == nullptr) return;
  TurnOutcome outcome;
  outcome.dialect = dialect.name;
  outcome.request_id = arrival.id;
  outcome.key_id = arrival.http.key_id;
  outcome.traceparent = arrival.traceparent;
  outcome.status = error.status;
  outcome.error_code = error.code.empty() ? error.type : error.code;
  outcome.seconds = std::chrono::duration<double>(Steady::now() - arrival.at).count();
  options.observer->OnEnd(outcome);
}

// One engine request per prompt.
Result<std::vector<Request>> TurnService::Impl::Requests(const TurnRequest& turn,
                                                         std::vector<std::vector<Token>> prompts,
                                                         const KvDomain& domain) {
  std::unique_ptr<TokenMask> mask;
  const bool is_free = turn.prompt_only ||
                       (turn.sampling.ignores_eos && turn.answer.kind == AnswerShape::Kind::kText &&
                        turn.conversation.tools.empty());
  if (model.masks != nullptr && !is_free) {
    HEARTH_ASSIGN(mask, model.masks->New(turn));
  }
  std::vector<Request> requests;
  for (std::vector<Token>& prompt : prompts) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling = turn.sampling;
    request.sampling.eos_tokens = model.format->stop_tokens();
    if (!turn.has_seed) request.sampling.seed = nonce ^ (++counter * kGoldenRatio);
    request.max_tokens = turn.max_tokens;
    request.prompt_only = turn.prompt_only;
    request.pools = turn.pools;
    request.priority = turn.priority;
    request.timeout_us = turn.timeout_us;
    request.domain = domain;
    if (mask != nullptr) request.mask = mask->Clone();
    requests.push_back(std::move(request));
  }
  return requests;
}

std::optional<ApiError> TurnService::Impl::Submit(const std::shared_ptr<Exchange>& exchange,
                                                  const std::vector<Request>& requests,
                                                  int num_choices) {
  std::vector<SeqId> ids;
  for (const Request& request : requests) {
    std::vector<std::shared_ptr<EventSink>> sinks;
    for (int i = 0; i < num_choices; ++i) {
      sinks.push_back(exchange->Sink(static_cast<int>(ids.size()) + i));
      if (options.watch) sinks.back() = options.watch(std::move(sinks.back()));
    }
    const std::vector<Admission> admissions = SubmitReplies(engine, request, sinks);
    if (!admissions.back().ok()) {
      for (const SeqId id : ids) engine.Cancel(id);
      return FromAdmission(admissions.back(), engine.snapshot()->is_draining);
    }
    for (const Admission& admission : admissions) ids.push_back(admission.id);
  }
  {
    const MutexLock lock(mu);
    live.push_back(exchange);
  }
  exchange->Begin(std::move(ids));
  return std::nullopt;
}

std::optional<ApiError> TurnService::Impl::Charge(const Arrival& arrival, int num_replies,
                                                  int num_prompt,
                                                  std::shared_ptr<RateHold>& hold) const {
  const std::string& key = arrival.http.key_id;
  if (key.empty() || options.limiter == nullptr) return std::nullopt;
  const RateLimiter::Asked asked{num_replies, num_prompt, SteadyClock().now_us()};
  if (const auto refusal = options.limiter->Start(key, asked)) return TooMuch(*refusal);
  hold = std::make_shared<RateHold>(*options.limiter, key, asked);
  return std::nullopt;
}

std::optional<ApiError> TurnService::Impl::Start(const Arrival& arrival, const Dialect& dialect,
                                                 const TurnService& service) {
  ApiResult<Json> body = Body(arrival.http);
  if (auto* error = std::get_if<ApiError>(&body)) return std::move(*error);
  ApiResult<TurnRequest> read = dialect.read(std::move(std::get<Json>(body)), arrival.http);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  auto& turn = std::get<TurnRequest>(read);
  if (auto error = service.CheckModel(turn.model)) return error;
  std::string neutralised = NeutraliseVolatile(options.neutralise, turn.conversation);
  auto prompts = service.Prompts(turn);
  if (auto* error = std::get_if<ApiError>(&prompts)) return std::move(*error);
  auto& tokens = std::get<std::vector<std::vector<Token>>>(prompts);
  if (auto error = HoldToLimits(arrival.limits, tokens, turn)) return error;
  ReplyFacts facts{arrival.id, model.name, model.fingerprint, std::time(nullptr), 0, {}};
  for (const auto& prompt : tokens) facts.num_prompt += static_cast<int>(prompt.size());
  if (auto error = CheckPromptScores(turn, facts.num_prompt)) return error;
  if (turn.echoes) facts.echoes = Echoes(turn.plain_prompts, tokens, *model.tokenizer);
  Result<std::vector<Request>> requests =
      Requests(turn, std::move(tokens), DomainOf(arrival.http.key_id, turn.cache_salt, nonce));
  if (!requests.ok()) return MaskError(requests.status(), turn);
  Result<StopStrings> stops = StopStrings::Make(turn.stops);
  if (!stops.ok()) return FromStatus(stops.status());
  std::vector<Turn> turns;
  for (size_t i = 0; i < requests->size() * static_cast<size_t>(turn.num_choices); ++i) {
    turns.emplace_back(
        turn.plain_prompts.empty() ? model.format->NewReader() : NewPlainReader(*model.tokenizer),
        *stops, *model.tokenizer);
  }
  Exchange::Form form{dialect.name,        arrival.id,   arrival.http.key_id,
                      arrival.traceparent, turn.streams, turn.stops,
                      turn.num_choices,    arrival.at,   dialect.describe_error};
  form.mask_field = MaskField(turn);
  form.neutralised = std::move(neutralised);
  form.wants_progress = turn.wants_progress;
  if (auto error = Charge(arrival, static_cast<int>(turns.size()), facts.num_prompt, form.hold)) {
    return error;
  }
  std::shared_ptr<HttpReply> reply = arrival.reply;
  if (dialect.detach) {
    auto detached = dialect.detach(turn, facts, reply);
    if (auto* error = std::get_if<ApiError>(&detached)) return std::move(*error);
    reply = std::get<std::shared_ptr<HttpReply>>(std::move(detached));
  }
  auto exchange = std::make_shared<Exchange>(house, std::move(reply), std::move(turns),
                                             dialect.write(turn, facts), std::move(form));
  return Submit(exchange, *requests, turn.num_choices);
}

std::vector<Token> PlainTokens(const Tokenizer& tokenizer, const std::string& text, bool begins) {
  std::vector<Token> tokens;
  const TokenizerTraits& traits = tokenizer.traits();
  if (begins && traits.add_bos && traits.bos) tokens.push_back(*traits.bos);
  tokenizer.Encode(text, tokens);
  return tokens;
}

TurnService::TurnService(Engine& engine, ServedModel model, const ServiceOptions& options)
    : impl_(std::make_unique<Impl>(engine, std::move(model), options)) {}

TurnService::~TurnService() {
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

void TurnService::AddTurnRoute(Router& router, std::string pattern, Dialect dialect) {
  const auto shared = std::make_shared<const Dialect>(std::move(dialect));
  router.Add("POST", std::move(pattern), Auth::kKey,
             [this, shared](HttpRequest http, std::shared_ptr<HttpReply> reply) {
               const auto arrival = impl_->Admit(std::move(http), std::move(reply), *shared);
               if (arrival == nullptr) return;
               const bool taken = impl_->readers.Offer([this, arrival, shared] {
                 const auto error = impl_->Start(*arrival, *shared, *this);
                 if (error) impl_->Refuse(*arrival, *shared, *error);
               });
               if (!taken) impl_->Refuse(*arrival, *shared, TooManyUnread());
             });
}

void TurnService::AddAnswerRoute(Router& router, std::string pattern, Dialect dialect,
                                 Answer work) {
  const auto shared = std::make_shared<const Dialect>(std::move(dialect));
  router.Add("POST", std::move(pattern), Auth::kKey,
             [this, shared, work](HttpRequest http, std::shared_ptr<HttpReply> reply) {
               const auto arrival = impl_->Admit(std::move(http), std::move(reply), *shared);
               if (arrival == nullptr) return;
               const bool taken = impl_->readers.Offer([this, arrival, shared, work] {
                 ApiResult<Json> body = impl_->Body(arrival->http);
                 ApiResult<Json> answer = std::move(body);
                 if (auto* json = std::get_if<Json>(&answer)) {
                   answer = work(std::move(*json), arrival->http);
                 }
                 if (const auto* error = std::get_if<ApiError>(&answer)) {
                   return impl_->Refuse(*arrival, *shared, *error);
                 }
                 SendJson(*arrival->reply, std::get<Json>(answer));
               });
               if (!taken) impl_->Refuse(*arrival, *shared, TooManyUnread());
             });
}

ApiResult<std::vector<Token>> TurnService::Render(Conversation conversation,
                                                  const AnswerShape& shape) const {
  NeutraliseVolatile(impl_->options.neutralise, conversation);
  const ServedModel& model = impl_->model;
  Result<std::vector<Token>> prompt = Rendered(model, conversation, shape);
  if (!prompt.ok()) return FromStatus(prompt.status());
  return *std::move(prompt);
}

ApiResult<int64_t> TurnService::CountTokens(TurnRequest request) const {
  if (auto error = CheckModel(request.model)) return *std::move(error);
  ApiResult<std::vector<Token>> prompt = Render(std::move(request.conversation), request.answer);
  if (auto* error = std::get_if<ApiError>(&prompt)) return std::move(*error);
  return static_cast<int64_t>(std::get<std::vector<Token>>(prompt).size());
}

ApiResult<std::vector<std::vector<Token>>> TurnService::Prompts(const TurnRequest& request) const {
  const ServedModel& model = impl_->model;
  std::vector<std::vector<Token>> prompts;
  for (const PlainPrompt& plain : request.plain_prompts) {
    std::vector<Token> tokens;
    if (const auto* given = std::get_if<std::vector<Token>>(&plain)) {
      tokens = *given;
    } else {
      tokens = PlainTokens(*model.tokenizer, std::get<std::string>(plain), true);
    }
    for (const Token token : tokens) {
      if (token >= 0 && token < model.tokenizer->vocab_size()) continue;
      return BadField(request.prompt_field, Printf("token %d is not in the vocabulary of %d", token,
                                                   model.tokenizer->vocab_size()));
    }
    if (tokens.empty()) return BadField(request.prompt_field, "must not be empty");
    prompts.push_back(std::move(tokens));
  }
  if (request.plain_prompts.empty()) {
    auto prompt = Rendered(model, request.conversation, request.answer);
    if (!prompt.ok()) return FromStatus(prompt.status());
    prompts.push_back(*std::move(prompt));
  }
  const int reply = request.prompt_only ? 0 : std::max(1, request.max_tokens);
  for (const std::vector<Token>& prompt : prompts) {
    if (prompt.size() + static_cast<size_t>(reply) > static_cast<size_t>(model.max_context)) {
      return TooLong(Printf("This model's maximum context length is %d tokens", model.max_context),
                     prompt.size(), static_cast<size_t>(reply), request.prompt_field);
    }
  }
  return prompts;
}

std::optional<ApiError> TurnService::CheckModel(const std::string& name) const {
  if (name.empty() || name == impl_->model.name) return std::nullopt;
  ApiError error;
  error.status = 404;
  error.code = "model_not_found";
  error.param = "model";
  error.message =
      "model " + Quoted(name.substr(0, 80)) + " not found; available: " + impl_->model.name;
  return error;
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

const ServedModel& TurnService::model() const { return impl_->model; }

void SendError(HttpReply& reply, const ApiError& error, const std::string& body,
               const std::string& request_id, HttpReply::Headers headers) {
  headers.push_back({"content-type", "application/json"});
  if (!request_id.empty()) {
    headers.push_back({"x-request-id", request_id});
    headers.push_back({"request-id", request_id});
  }
  if (error.retry_after_s > 0) {
    headers.push_back({"retry-after", Printf("%.0f", std::ceil(error.retry_after_s))});
  }
  reply.Send(error.status, std::move(headers), body);
}

void SendJson(HttpReply& reply, const Json& json) {
  reply.Send(200, {{"content-type", "application/json"}}, WriteJson(json));
}

}  // namespace hearth
