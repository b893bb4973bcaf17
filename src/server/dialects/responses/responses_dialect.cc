// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_dialect.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/decimal.h"
#include "server/dialects/responses/responses_request.h"
#include "server/dialects/responses/responses_writer.h"
#include "server/turns/background.h"
#include "server/turns/turn_service.h"
#include "server/turns/within_memory.h"

namespace hearth {
namespace {

// Of a chain that a request builds on, all responses together: as a tree some 50 MB.
constexpr size_t kMaxChainValues = 1'000'000;

// What a writer must know of the request.
struct ResponsesNotes {
  std::string tenant, previous_id, input;
  bool stores = false;
  ResponsesWriter::Form form;
};

// What all routes share. Lives as long as the longest of them.
struct ResponsesState {
  explicit ResponsesState(ResponseStore& s) : store(s), cipher(s.cipher_key()) {}
  ResponseStore& store;
  const TextCipher cipher;
  const std::shared_ptr<BackgroundResponses> background = std::make_shared<BackgroundResponses>();
};

HttpReply::Headers StreamHeaders() {
  return {{"content-type", kServerSentEvents}, {"cache-control", "no-cache"}};
}

// A stream that has begun cannot say that there is no memory for its rest: it is cut.
void FollowFrom(BackgroundResponse& job, const std::shared_ptr<HttpReply>& reply, int64_t after) {
  reply->StartStream(200, StreamHeaders());
  WithinMemoryOr([&] { job.Follow(reply, after); }, [&] { reply->Abort(); });
}

ApiError NotFound(const std::string& param, const std::string& id) {
  ApiError error;
  error.status = 404;
  error.code = "not_found";
  error.param = param;
  error.message = "response " + Quoted(id) + " not found, or no longer stored";
  return error;
}

// What we stored is ours: that it does not parse is a broken file, not a client's mistake.
ApiResult<JsonArray> StoredItems(const std::string& text, const char* member) {
  Result<Json> json = ParseJson(text);
  if (!json.ok()) return FromStatus(Status(Code::kCorrupt, "a stored response is damaged"));
  const Json* items = member == nullptr ? &*json : json->Find(member);
  if (items == nullptr || items->array() == nullptr) {
    return FromStatus(Status(Code::kCorrupt, "a stored response is damaged"));
  }
  return *items->array();
}

ApiResult<JsonArray> ItemsUpTo(ResponseStore& store, const std::string& tenant,
                               const std::string& id) {
  Result<std::vector<StoredResponse>> chain = store.Chain(tenant, id);
  if (!chain.ok()) {
    if (chain.status().code() != Code::kNotFound) return FromStatus(chain.status());
    ApiError error = NotFound("previous_response_id", id);
    error.code = "previous_response_not_found";
    return error;
  }
  JsonArray items;
  size_t num_values = 0;
  for (const StoredResponse& each : *chain) {
    num_values += MeasureJson(each.input).num_values + MeasureJson(each.response).num_values;
    if (num_values > kMaxChainValues) {
      return BadField("previous_response_id",
                      Printf("the responses that this one builds on have more than %zu JSON values",
                             kMaxChainValues));
    }
    HEARTH_ASSIGN(JsonArray input, StoredItems(each.input, nullptr));
    HEARTH_ASSIGN(JsonArray output, StoredItems(each.response, "output"));
    std::move(input.begin(), input.end(), std::back_inserter(items));
    std::move(output.begin(), output.end(), std::back_inserter(items));
  }
  return items;
}

ApiResult<ResponsesRequest> ReadRequest(ResponsesState& state, const Json& body,
                                        const HttpRequest& http) {
  return ReadResponsesRequest(
      body, [&](const std::string& id) { return ItemsUpTo(state.store, http.key_id, id); },
      [&](const std::string& encrypted) { return state.cipher.Decrypt(encrypted, http.key_id); });
}

// A response tells what it was sampled with, also where the request left that to the model.
void TellSampling(const SamplingParams& sampling, JsonObject& echo) {
  for (auto& [name, value] : echo) {
    if (!value.is_null()) continue;
    if (name == "temperature") value = MeantBy(sampling.temperature);
    if (name == "top_p") value = MeantBy(sampling.top_p);
  }
}

std::unique_ptr<ReplyWriter> NewWriter(const std::shared_ptr<ResponsesState>& state,
                                       const std::shared_ptr<const ResponsesNotes>& notes,
                                       const TurnRequest& request, const ReplyFacts& facts) {
  ResponsesWriter::Form form = notes->form;
  TellSampling(request.sampling, form.echo);
  if (notes->stores) {
    form.keep = [state, notes](const std::string& id, const std::string& response) {
      return state->store.Put(notes->tenant, {id, notes->previous_id, notes->input, response});
    };
  }
  if (const auto job = state->background->Find(notes->tenant, "resp_" + facts.id)) {
    form.watch = [job, names = facts.event_names](const Json& event, const std::string& bytes) {
      // Its events go through here alone; the first has number 0.
      const int64_t number = *event.Find("sequence_number")->integer();
      const bool is_failure = *event.Find("type") == Json("response.failed");
      std::string id;
      if (names != nullptr && !is_failure) {
        EventCursor cursor;
        cursor.num_whole = number + 1;
        id = EventIdLine(*names, cursor);
      }
      job->Watch(event, id + bytes);
    };
    form.num_told = job->num_events();
  }
  return std::make_unique<ResponsesWriter>(facts, std::move(form));
}

ApiResult<DialectTurn> ReadTurn(const std::shared_ptr<ResponsesState>& state, const Json& body,
                                const HttpRequest& http) {
  HEARTH_ASSIGN(ResponsesRequest request, ReadRequest(*state, body, http));
  auto notes = std::make_shared<ResponsesNotes>();
  notes->tenant = http.key_id;
  notes->previous_id = request.previous_id;
  notes->stores = request.stores;
  if (request.stores) notes->input = WriteJson(Json(std::move(request.input)));
  notes->form.echo = std::move(request.echo);
  notes->form.aliases = std::move(request.aliases);
  notes->form.is_background = request.is_background;
  if (request.wants_encrypted_reasoning) {
    notes->form.encrypt = [state, tenant = http.key_id](const std::string& thoughts) {
      return state->cipher.Encrypt(thoughts, tenant);
    };
  }
  DialectTurn out;
  if (request.is_background) {
    out.detach = [state, notes, streams = request.turn.streams](const ReplyFacts& facts,
                                                                std::shared_ptr<HttpReply> client) {
      return state->background->Open(notes->tenant, "resp_" + facts.id, streams, std::move(client),
                                     facts.seen.num_whole - 1);
    };
    out.rejoin = [state, notes, streams = request.turn.streams](
                     const ReplyFacts& facts, const std::shared_ptr<HttpReply>& client) {
      const auto job = state->background->Find(notes->tenant, "resp_" + facts.id);
      if (job == nullptr || (streams && !job->has_events())) return false;
      if (!streams) {
        job->Answer(client);
        return true;
      }
      FollowFrom(*job, client, facts.seen.num_whole - 1);
      return true;
    };
    // One that goes on is always a stream here; whether its client sees that is another matter.
    request.turn.streams = true;
  }
  out.write = [state, notes](const TurnRequest& sent, const ReplyFacts& facts) {
    return NewWriter(state, notes, sent, facts);
  };
  out.turn = std::move(request.turn);
  return out;
}

ApiResult<Json> CountTokens(const TurnService& service, const ServedModel& model,
                            ResponsesState& state, const Json& body, const HttpRequest& http) {
  HEARTH_ASSIGN(ResponsesRequest read, ReadRequest(state, body, http));
  HEARTH_ASSIGN(const int64_t count, service.CountTokens(model, std::move(read.turn)));
  return Json(JsonObject{{"object", "response.input_tokens"}, {"input_tokens", count}});
}

// A stored response of whoever asks.
ApiResult<StoredResponse> FindStored(ResponsesState& state, const HttpRequest& http) {
  const std::string& id = http.path_captures[0];
  Result<std::optional<StoredResponse>> found = state.store.Get(http.key_id, id);
  if (!found.ok()) return FromStatus(found.status());
  if (!*found) return NotFound("response_id", id);
  return **std::move(found);
}

std::shared_ptr<BackgroundResponse> FindRunning(ResponsesState& state, const HttpRequest& http) {
  auto job = state.background->Find(http.key_id, http.path_captures[0]);
  return job != nullptr && !job->is_over() ? job : nullptr;
}

// As it was stored: a long one costs no more than its copy.
ApiResult<Json> Retrieve(ResponsesState& state, const HttpRequest& http) {
  if (const auto job = FindRunning(state, http)) return job->snapshot();
  HEARTH_ASSIGN(StoredResponse found, FindStored(state, http));
  return Json(JsonText{std::move(found.response)});
}

ApiResult<Json> Remove(ResponsesState& state, const HttpRequest& http) {
  const std::string& id = http.path_captures[0];
  if (FindRunning(state, http) != nullptr) {
    ApiError error;
    error.code = "still_running";
    error.message = "the response is still running; cancel it first";
    return error;
  }
  Result<bool> removed = state.store.Delete(http.key_id, id);
  if (!removed.ok()) return FromStatus(removed.status());
  if (!*removed) return NotFound("response_id", id);
  state.background->Forget(id);
  return Json(JsonObject{{"id", id}, {"object", "response"}, {"deleted", true}});
}

// The items of its own turn, the newest first unless `order=asc`, all on one page.
ApiResult<Json> ListItems(ResponsesState& state, const HttpRequest& http) {
  HEARTH_ASSIGN(const StoredResponse stored, FindStored(state, http));
  HEARTH_ASSIGN(JsonArray items, StoredItems(stored.input, nullptr));
  const std::string bare = stored.id.substr(stored.id.find('_') + 1);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonObject& item = *items[i].object();
    if (items[i].Find("id") == nullptr) item.push_back({"id", "item_" + bare + Printf("%02zu", i)});
    for (auto& [name, value] : item) {
      if (name != "content" || value.string() == nullptr) continue;
      value = JsonArray{JsonObject{{"type", "input_text"}, {"text", *value.string()}}};
    }
    if (items[i].Find("type") == nullptr) item.push_back({"type", "message"});
    if (items[i].Find("status") == nullptr) item.push_back({"status", "completed"});
  }
  if (http.query.find("order=asc") == std::string::npos) std::reverse(items.begin(), items.end());
  const auto id_of = [](const Json& item) { return *item.Find("id"); };
  const Json first = id_of(items.front()), last = id_of(items.back());
  return Json(JsonObject{{"object", "list"},
                         {"data", std::move(items)},
                         {"first_id", first},
                         {"last_id", last},
                         {"has_more", false}});
}

void Answer(HttpReply& reply, ApiResult<Json> json) {
  if (json.ok()) return SendJson(reply, *json);
  SendError(reply, json.error(), WriteJson(OpenAiError(json.error())), "");
}

// A number out of `?a=b&starting_after=12`; nothing when it is none.
std::optional<int64_t> NumberIn(const std::string& query, std::string_view name) {
  const std::string wanted = std::string(name) + "=";
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string part = query.substr(at, end - at);
    at = end + 1;
    if (!part.starts_with(wanted)) continue;
    Result<Json> number = ParseJson(part.substr(wanted.size()));
    if (number.ok() && number->integer()) return *number->integer();
    return std::nullopt;
  }
  return -1;
}

// Back to the events of one that runs, or has not long been over.
void Resume(ResponsesState& state, const HttpRequest& http,
            const std::shared_ptr<HttpReply>& reply) {
  const std::optional<int64_t> after = NumberIn(http.query, "starting_after");
  if (!after)
    return Answer(*reply, BadField("starting_after", "must be the sequence number of an event"));
  const auto job = state.background->Find(http.key_id, http.path_captures[0]);
  if (job == nullptr || !job->has_events()) {
    ApiResult<Json> found = Retrieve(state, http);
    if (!found.ok()) return Answer(*reply, std::move(found));
    return Answer(
        *reply,
        BadField("stream", "the events of this response are not stored, or no longer stored"));
  }
  FollowFrom(*job, reply, *after);
}

void Cancel(ResponsesState& state, const HttpRequest& http,
            const std::shared_ptr<HttpReply>& reply) {
  if (const auto job = FindRunning(state, http)) return job->Cancel(reply);
  ApiResult<Json> found = Retrieve(state, http);
  if (found.ok()) {
    Result<Json> json = ParseJson(WriteJson(*found));
    const Json* status = json.ok() ? json->Find("status") : nullptr;
    if (status == nullptr || *status != Json("cancelled")) {
      ApiError error;
      error.code = "not_cancellable";
      error.message = "the response has ended; only running background responses can be cancelled";
      found = error;
    }
  }
  Answer(*reply, std::move(found));
}

HttpHandler Handler(const std::shared_ptr<ResponsesState>& state,
                    ApiResult<Json> (*answer)(ResponsesState&, const HttpRequest&)) {
  return [state, answer](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
    Answer(*reply, answer(*state, http));
  };
}

HttpHandler RetrieveOrResume(const std::shared_ptr<ResponsesState>& state) {
  return [state](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
    if (http.query.find("stream=true") != std::string::npos) return Resume(*state, http, reply);
    Answer(*reply, Retrieve(*state, http));
  };
}

class ResponsesDialect final : public Dialect {
 public:
  explicit ResponsesDialect(ResponseStore& store)
      : house_(std::make_shared<ResponsesState>(store)) {}
  std::string name() const override { return "responses"; }
  std::vector<DialectRoute> routes() const override;
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest& http) const override {
    return ReadTurn(house_, body, http);
  }

 private:
  const std::shared_ptr<ResponsesState> house_;
};

std::vector<DialectRoute> ResponsesDialect::routes() const {
  const auto count = [state = house_](const TurnService& service, const ServedModel& model,
                                      const Json& body, const HttpRequest& http) {
    return CountTokens(service, model, *state, body, http);
  };
  const auto cancel = [state = house_](const HttpRequest& http,
                                       const std::shared_ptr<HttpReply>& reply) {
    Cancel(*state, http, reply);
  };
  return {
      {{"POST", "/v1/responses", Auth::kKey, "A reply in items, stored unless `store` is false",
        ResponsesFields()}},
      {{"POST", "/v1/responses/input_tokens", Auth::kKey, "How many tokens such a request has",
        ResponsesFields()},
       {},
       {},
       false,
       count},
      {{"GET", "/v1/responses/{id}", Auth::kKey,
        "A stored or background response; `?stream=true&starting_after=N`: its events"},
       {},
       RetrieveOrResume(house_),
       true},
      {{"DELETE", "/v1/responses/{id}", Auth::kKey, "Forget it"},
       {},
       Handler(house_, Remove),
       true},
      {{"GET", "/v1/responses/{id}/input_items", Auth::kKey, "What it was asked"},
       {},
       Handler(house_, ListItems),
       true},
      {{"POST", "/v1/responses/{id}/cancel", Auth::kKey, "End a background response"},
       {},
       cancel,
       true},
  };
}

}  // namespace

std::shared_ptr<const Dialect> MakeResponsesDialect(ResponseStore& store) {
  return std::make_shared<ResponsesDialect>(store);
}

}  // namespace hearth
