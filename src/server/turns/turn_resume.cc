// SPDX-License-Identifier: Apache-2.0
// The part of the service that finds out which reply a request is about: a new one, the rest of one
// whose stream broke (Last-Event-ID), or the same once more (Idempotency-Key). A reply that is
// asked for again is computed again, from the same seed, so there is nothing to splice.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/fresh_random.h"
#include "server/access/request_digest.h"
#include "server/turns/turn_service_impl.h"

namespace hearth {
namespace {

constexpr const char* kLastEvent = "Last-Event-ID";
constexpr size_t kMaxKeyBytes = 255;  // of an Idempotency-Key
// Of a request that is noted whole; longer ones are asked for again by who has them.
constexpr size_t kMaxNotedBody = size_t{256} << 10;

ApiError Refusal(int status, const char* code, const char* header, std::string message) {
  ApiError error;
  error.status = status;
  error.code = code;
  error.param = header;
  error.message = std::move(message);
  return error;
}

// Where the journal has it. A digest, so that no name can be aimed at.
std::string JournalName(const char* kind, const std::string& owner, std::string_view what) {
  const auto digest =
      DigestOfRequest(kind, std::to_string(owner.size()) + ":" + owner + std::string(what));
  return Printf("%016llx%016llx", static_cast<unsigned long long>(digest[0]),
                static_cast<unsigned long long>(digest[1]));
}

std::string ReplyName(const HttpRequest& http, const ReplyOrigin& origin) {
  return JournalName("reply", http.key_id, origin.id);
}

std::string RequestName(const HttpRequest& http, std::string_view id) {
  return JournalName("request", http.key_id, id);
}

// The number after `name=` in a query; 0 when there is none, nothing when it is no number.
std::optional<int64_t> EventsBefore(const std::string& query) {
  const size_t at = query.find("starting_after=");
  if (at == std::string::npos) return 0;
  const std::string_view rest = std::string_view(query).substr(at + 15);
  const std::string_view digits = rest.substr(0, rest.find('&'));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (number < -1 || number > INT32_MAX) return std::nullopt;
  return number + 1;  // the first event has number 0
}

ApiError AnotherServer(const char* header) {
  return Refusal(409, "reply_changed", header,
                 "this server would not compute the same reply again: its model, version, settings "
                 "or date are not those that the reply began with; send the request without this "
                 "header");
}

// What the request leaves to the server's settings and model file.
std::string SettingsOf(const TurnRequest& turn) {
  const SamplingParams& s = turn.sampling;
  return Printf("%a %d %a %a %a %a %a", static_cast<double>(s.temperature), s.top_k,
                static_cast<double>(s.top_p), static_cast<double>(s.min_p),
                static_cast<double>(s.typical_p), static_cast<double>(s.repetition_penalty),
                static_cast<double>(s.presence_penalty)) +
         Printf(" %d %d", turn.max_tokens, turn.num_choices);
}

}  // namespace

ApiStatus TurnService::Impl::FindOrigin(const Arrival& arrival, const Json& body,
                                        Reading& reading) {
  reading.origin.id = arrival.id;
  reading.origin.created_s = std::time(nullptr);
  reading.origin.seed = FreshNumber();
  const std::string_view last_event = arrival.http.header("last-event-id");
  const std::string_view key = arrival.http.header("idempotency-key");
  if (!reading.read.turn.streams && last_event.empty() && key.empty()) return {};
  reading.origin.request = DigestOfJsonRequest(arrival.http.path, body);
  const auto says = [&](const char* name, bool flag) {
    const Json* value = body.Find(name);
    return value != nullptr && *value == Json(flag);
  };
  reading.has_name = named_paths.contains(arrival.http.path) && says("stream", true) &&
                     !says("store", false) && arrival.http.body.size() <= kMaxNotedBody;
  // An EventSource asks for a path, and for the rest of that by the header.
  if (!last_event.empty()) return FindStream(arrival, last_event, reading);
  if (arrival.resumes) return GoOnAfter(*arrival.resumes, reading);
  if (!key.empty()) return FindKey(arrival, key, reading);
  return {};
}

ApiStatus TurnService::Impl::FindStream(const Arrival& arrival, std::string_view last_event,
                                        Reading& reading) const {
  if (!reading.read.turn.streams) {
    return Refusal(400, "not_a_stream", kLastEvent,
                   "Last-Event-ID resumes a stream, and this request asks for none; set \"stream\" "
                   "to true");
  }
  const auto id = ReadEventId(last_event, event_seal, arrival.http.key_id);
  if (id) return GoOnAfter(*id, reading);
  return Refusal(400, "invalid_event_id", kLastEvent,
                 "Last-Event-ID is not the id of an event that this server sent to this key; "
                 "after a restart that takes --cache-dir or --cache-key");
}

ApiStatus TurnService::Impl::GoOnAfter(const EventId& id, Reading& reading) {
  if (id.origin.request != reading.origin.request) {
    return Refusal(409, "request_mismatch", kLastEvent,
                   "Last-Event-ID is of the reply to another request: send the same body to the "
                   "same path to resume it");
  }
  reading.origin = id.origin;
  reading.seen = id.cursor;
  reading.again = TurnOutcome::Again::kResumed;
  return {};
}

ApiStatus TurnService::Impl::FindKey(const Arrival& arrival, std::string_view key,
                                     Reading& reading) {
  constexpr const char* kHeader = "Idempotency-Key";
  const bool is_plain = std::ranges::all_of(key, [](char c) { return c >= ' ' && c <= '~'; });
  if (key.size() > kMaxKeyBytes || !is_plain) {
    return Refusal(
        400, "invalid_idempotency_key", kHeader,
        Printf("Idempotency-Key must have at most %zu printable ASCII characters", kMaxKeyBytes));
  }
  reading.key_name = JournalName("key", arrival.client, key);
  // Noted at once, without its basis: of two requests that come together the second is the same.
  const std::string own = AsBytes(reading.origin);
  const std::string noted =
      journal->GetOrPut(arrival.client, reading.key_name, own, std::time(nullptr));
  const auto origin = noted == own ? std::nullopt : ReplyOriginFrom(noted);
  if (!origin) return {};  // new, or nothing that can be used
  if (origin->request != reading.origin.request) {
    return Refusal(422, "idempotency_key_reused", kHeader,
                   "this Idempotency-Key was used with another request within the last hour; use "
                   "a new key for a new request");
  }
  reading.origin = *origin;
  reading.again = TurnOutcome::Again::kReplayed;
  return {};
}

ApiStatus TurnService::Impl::SettleOrigin(const Arrival& arrival, const ServedModel& model,
                                          const std::vector<std::vector<Token>>& prompts,
                                          Reading& reading) const {
  const TurnRequest& turn = reading.read.turn;
  if (!turn.streams && reading.key_name.empty()) return {};
  const std::vector<std::string> words{model.name, model.fingerprint, model.content,
                                       std::to_string(model.max_context), SettingsOf(turn)};
  uint64_t basis = 0;
  for (const auto& prompt : prompts) basis = BasisOf(words, prompt, basis);
  basis |= 1;  // 0: not known yet
  ReplyOrigin& origin = reading.origin;
  const bool is_again = reading.again != TurnOutcome::Again::kNo;
  if (is_again && origin.basis != 0 && origin.basis != basis) {
    const bool is_resumed = reading.again == TurnOutcome::Again::kResumed;
    return AnotherServer(is_resumed ? kLastEvent : "Idempotency-Key");
  }
  const bool is_new = origin.basis == 0;
  origin.basis = basis;
  if (turn.streams) {
    reading.event_names =
        std::make_shared<const EventNames>(event_seal, origin, arrival.http.key_id);
  }
  if (is_new && !reading.key_name.empty()) {
    journal->Put(arrival.client, reading.key_name, AsBytes(origin), std::time(nullptr));
  }
  if (is_new && reading.has_name) {
    journal->Put(arrival.client, RequestName(arrival.http, origin.id),
                 AsBytes(origin) + arrival.http.body, std::time(nullptr));
  }
  if (!is_again) return {};
  if (const auto bytes = journal->Get(ReplyName(arrival.http, origin), std::time(nullptr))) {
    reading.so_far = JournalRecordFrom(*bytes).value_or(JournalRecord());
  }
  const int num_cached = reading.so_far.num_cached;
  if (reading.seen.num_cached < 0) reading.seen.num_cached = num_cached;
  return {};
}

ReplyFacts TurnService::Impl::FactsOf(const Reading& reading, const std::string& model,
                                      const std::string& fingerprint) {
  ReplyFacts facts{reading.origin.id, model, fingerprint, reading.origin.created_s, 0, {}};
  facts.event_names = reading.event_names;
  facts.seen = reading.seen;
  return facts;
}

bool TurnService::Impl::Rejoined(const Arrival& arrival, const Reading& reading) {
  if (reading.again == TurnOutcome::Again::kNo || !reading.read.rejoin) return false;
  return reading.read.rejoin(FactsOf(reading, reading.read.turn.model, ""), arrival.reply);
}

// The last token that is known is computed again: whether it ended the reply, and how, is the
// engine's to say.
void TurnService::Impl::GoOnFrom(const Arrival& arrival, const ServedModel& model,
                                 const Reading& reading, std::vector<Request>& requests,
                                 Exchange::Form& form) const {
  form.event_names = reading.event_names;
  form.seen = reading.seen;
  form.again = reading.again;
  const TurnRequest& turn = reading.read.turn;
  const bool is_one = requests.size() == 1 && turn.num_choices == 1 && !turn.prompt_only;
  if (!is_one || (reading.event_names == nullptr && reading.key_name.empty())) return;
  Request& request = requests.front();
  std::vector<Token> said = reading.so_far.tokens;
  if (!said.empty()) said.pop_back();
  // Log-probabilities are not written down.
  const bool keeps = turn.sampling.num_logprobs < 0 && turn.sampling.num_prompt_logprobs < 0;
  const auto is_odd = [&](Token token) {
    return token < 0 || token >= model.tokenizer->vocab_size() ||
           (request.mask == nullptr && EndsSequence(request.sampling, token));
  };
  const size_t most = turn.max_tokens > 0 ? static_cast<size_t>(turn.max_tokens)
                                          : static_cast<size_t>(model.max_context) -
                                                std::min(request.prompt.size(),
                                                         static_cast<size_t>(model.max_context));
  if (!keeps || said.size() >= most || std::ranges::any_of(said, is_odd)) said.clear();
  if (request.mask != nullptr && !said.empty()) {
    std::unique_ptr<TokenMask> mask = request.mask->Clone();
    const bool fits = std::ranges::all_of(said, [&](Token t) { return mask->Accept(t); });
    if (fits && !mask->is_finished())
      request.mask = std::move(mask);
    else
      said.clear();
  }
  JournalRecord known{said, reading.seen.num_cached};
  form.notes = journal->Begin(arrival.client, ReplyName(arrival.http, reading.origin), known);
  request.said = said;
  form.said = std::move(said);
}

void TurnService::Impl::NoteNamedPaths(const std::vector<DialectRoute>& routes) {
  for (const DialectRoute& turn : routes) {
    if (turn.handler || turn.answer || turn.model_answer) continue;
    const bool is_named = std::ranges::any_of(routes, [&](const DialectRoute& each) {
      return each.endpoint.method == "GET" && each.endpoint.path == turn.endpoint.path + "/{id}";
    });
    if (is_named) named_paths[turn.endpoint.path] = turn.endpoint.fields;
  }
}

std::optional<TurnService::Impl::NamedReply> TurnService::Impl::NamedBy(
    const HttpRequest& http) const {
  if (http.method != "GET" || http.path_captures.size() != 1) return std::nullopt;
  if (http.query.find("stream=true") == std::string::npos) return std::nullopt;
  const std::optional<int64_t> before = EventsBefore(http.query);
  const std::string& name = http.path_captures[0];
  const size_t slash = http.path.rfind('/');
  if (!before || slash == std::string::npos) return std::nullopt;
  NamedReply named{http, {}};
  HttpRequest& out = named.request;
  out.path.resize(slash);
  const size_t id = name.find('_');
  if (!named_paths.contains(out.path) || id == std::string::npos) return std::nullopt;
  auto noted = journal->Get(RequestName(http, name.substr(id + 1)), std::time(nullptr));
  if (!noted || noted->size() <= kOriginBytes) return std::nullopt;
  auto origin = ReplyOriginFrom(std::string_view(*noted).substr(0, kOriginBytes));
  if (!origin) return std::nullopt;
  named.resumes.origin = *std::move(origin);
  named.resumes.cursor.num_whole = *before;
  out.method = "POST";
  out.query.clear();
  out.path_captures.clear();
  out.body = noted->substr(kOriginBytes);
  return named;
}

ApiStatus TurnService::Impl::StartNamed(const Arrival& arrival, NamedReply named) {
  const std::span<const Field> fields = named_paths.at(named.request.path);
  const auto turn = Admit(std::move(named.request), arrival.reply, arrival.dialect, fields);
  if (turn == nullptr) return {};  // and told so
  turn->resumes = std::move(named.resumes);
  const ApiStatus status = Start(turn);
  if (!status.ok()) Refuse(*turn, status.error());
  return {};
}

}  // namespace hearth
