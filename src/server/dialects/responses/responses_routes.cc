// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_routes.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "server/dialects/responses/responses_request.h"
#include "server/dialects/responses/responses_writer.h"
#include "server/turns/background.h"

namespace hearth {
namespace {

struct ResponsesNotes : DialectNotes {
  std::string tenant, previous_id, input;
  bool stores = false, is_background = false, streams = false;
  ResponsesWriter::Form form;
};

// What all routes share. Lives as long as the longest of them.
struct House {
  explicit House(ResponseStore& s) : store(s), sealer(s.seal_key()) {}
  ResponseStore& store;
  const TextSealer sealer;
  const std::shared_ptr<BackgroundResponses> background = std::make_shared<BackgroundResponses>();
};

ApiError NotFound(const std::string& param, const std::string& id) {
  ApiError error;
  error.status = 404;
  error.code = "not_found";
  error.param = param;
  error.message = "there is no response " + Quoted(id) + " here, or no longer";
  return error;
}

// What we stored is ours: that it does not parse is a broken file, not a client's mistake.
ApiResult<JsonArray> StoredItems(const std::string& text, const char* member) {
  Result<Json> json = ParseJson(text);
  if (!json.ok()) return FromStatus(Status(Code::kCorrupt, "a stored response is broken"));
  const Json* items = member == nullptr ? &*json : json->Find(member);
  if (items == nullptr || items->array() == nullptr) {
    return FromStatus(Status(Code::kCorrupt, "a stored response is broken"));
  }
  return *items->array();
}

ApiResult<JsonArray> ItemsUpTo(ResponseStore& store, const std::string& tenant,
                               const std::string& id) {
  Result<std::vector<StoredResponse>> chain = store.Chain(tenant, id, std::time(nullptr));
  if (!chain.ok()) {
    if (chain.status().code() != Code::kNotFound) return FromStatus(chain.status());
    ApiError error = NotFound("previous_response_id", id);
    error.code = "previous_response_not_found";
    return error;
  }
  JsonArray items;
  for (const StoredResponse& each : *chain) {
    for (auto part : {StoredItems(each.input, nullptr), StoredItems(each.response, "output")}) {
      if (auto* error = std::get_if<ApiError>(&part)) return std::move(*error);
      for (Json& item : std::get<JsonArray>(part)) items.push_back(std::move(item));
    }
  }
  return items;
}

ApiResult<ResponsesRequest> ReadRequest(House& house, const Json& body, const HttpRequest& http) {
  return ReadResponsesRequest(
      body, [&](const std::string& id) { return ItemsUpTo(house.store, http.key_id, id); },
      [&](const std::string& sealed) { return house.sealer.Open(sealed, http.key_id); });
}

ApiResult<TurnRequest> ReadTurn(const std::shared_ptr<House>& house, const Json& body,
                                const HttpRequest& http) {
  ApiResult<ResponsesRequest> read = ReadRequest(*house, body, http);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  auto& request = std::get<ResponsesRequest>(read);
  auto notes = std::make_shared<ResponsesNotes>();
  notes->tenant = http.key_id;
  notes->previous_id = request.previous_id;
  notes->stores = request.stores;
  if (request.stores) notes->input = WriteJson(Json(std::move(request.input)));
  notes->form.echo = std::move(request.echo);
  notes->form.faces = std::move(request.faces);
  notes->form.is_background = notes->is_background = request.is_background;
  if (request.wants_encrypted_reasoning) {
    notes->form.seal = [house, tenant = http.key_id](const std::string& thoughts) {
      return house->sealer.Seal(thoughts, tenant);
    };
  }
  // One that goes on is always a stream here; whether its client sees that is another matter.
  notes->streams = request.turn.streams;
  request.turn.streams = request.turn.streams || request.is_background;
  request.turn.notes = std::move(notes);
  return std::move(request.turn);
}

std::unique_ptr<ReplyWriter> NewWriter(const std::shared_ptr<House>& house,
                                       const TurnRequest& request, const ReplyFacts& facts) {
  const auto notes = std::static_pointer_cast<const ResponsesNotes>(request.notes);
  ResponsesWriter::Form form = notes->form;
  if (notes->stores) {
    form.keep = [house, notes](const std::string& id, const std::string& response) {
      return house->store.Put(notes->tenant, {id, notes->previous_id, notes->input, response},
                              std::time(nullptr));
    };
  }
  if (const auto job = house->background->Find(notes->tenant, "resp_" + facts.id)) {
    form.watch = [job](const Json& event, const std::string& bytes) { job->Watch(event, bytes); };
  }
  return std::make_unique<ResponsesWriter>(facts, std::move(form));
}

ApiResult<std::shared_ptr<HttpReply>> Detach(House& house, const TurnRequest& request,
                                             const ReplyFacts& facts,
                                             std::shared_ptr<HttpReply> client) {
  const auto notes = std::static_pointer_cast<const ResponsesNotes>(request.notes);
  if (!notes->is_background) return client;
  return house.background->Open(notes->tenant, "resp_" + facts.id, notes->streams,
                                std::move(client));
}

ApiResult<Json> CountTokens(const TurnService& service, House& house, const Json& body,
                            const HttpRequest& http) {
  ApiResult<ResponsesRequest> read = ReadRequest(house, body, http);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  ApiResult<int64_t> count = service.CountTokens(std::get<ResponsesRequest>(std::move(read)).turn);
  if (auto* error = std::get_if<ApiError>(&count)) return std::move(*error);
  return Json(
      JsonObject{{"object", "response.input_tokens"}, {"input_tokens", std::get<int64_t>(count)}});
}

// A stored response of whoever asks.
ApiResult<StoredResponse> FindStored(House& house, const HttpRequest& http) {
  const std::string& id = http.path_captures[0];
  Result<std::optional<StoredResponse>> found =
      house.store.Get(http.key_id, id, std::time(nullptr));
  if (!found.ok()) return FromStatus(found.status());
  if (!*found) return NotFound("response_id", id);
  return **std::move(found);
}

std::shared_ptr<BackgroundResponse> FindRunning(House& house, const HttpRequest& http) {
  auto job = house.background->Find(http.key_id, http.path_captures[0]);
  return job != nullptr && !job->is_over() ? job : nullptr;
}

ApiResult<Json> Retrieve(House& house, const HttpRequest& http) {
  if (const auto job = FindRunning(house, http)) return job->snapshot();
  ApiResult<StoredResponse> found = FindStored(house, http);
  if (auto* error = std::get_if<ApiError>(&found)) return std::move(*error);
  Result<Json> json = ParseJson(std::get<StoredResponse>(found).response);
  if (!json.ok()) return FromStatus(Status(Code::kCorrupt, "a stored response is broken"));
  return *std::move(json);
}

ApiResult<Json> Remove(House& house, const HttpRequest& http) {
  const std::string& id = http.path_captures[0];
  if (FindRunning(house, http) != nullptr) {
    ApiError error;
    error.code = "still_running";
    error.message = "the response is not over; cancel it first";
    return error;
  }
  Result<bool> removed = house.store.Delete(http.key_id, id);
  if (!removed.ok()) return FromStatus(removed.status());
  if (!*removed) return NotFound("response_id", id);
  house.background->Forget(id);
  return Json(JsonObject{{"id", id}, {"object", "response"}, {"deleted", true}});
}

// The items of its own turn, the newest first unless `order=asc`, all on one page.
ApiResult<Json> ListItems(House& house, const HttpRequest& http) {
  ApiResult<StoredResponse> found = FindStored(house, http);
  if (auto* error = std::get_if<ApiError>(&found)) return std::move(*error);
  const auto& stored = std::get<StoredResponse>(found);
  ApiResult<JsonArray> read = StoredItems(stored.input, nullptr);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  JsonArray items = std::get<JsonArray>(std::move(read));
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

void Answer(HttpReply& reply, const ApiResult<Json>& json) {
  if (const auto* error = std::get_if<ApiError>(&json)) {
    return SendError(reply, *error, WriteJson(OpenAiError(*error)), "");
  }
  SendJson(reply, std::get<Json>(json));
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
void Resume(House& house, const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
  const std::optional<int64_t> after = NumberIn(http.query, "starting_after");
  if (!after) return Answer(*reply, BadField("starting_after", "must be the number of an event"));
  const auto job = house.background->Find(http.key_id, http.path_captures[0]);
  if (job == nullptr || !job->has_events()) {
    const ApiResult<Json> found = Retrieve(house, http);
    if (std::holds_alternative<ApiError>(found)) return Answer(*reply, found);
    return Answer(*reply,
                  BadField("stream", "the events of this response are not kept, or no longer"));
  }
  reply->StartStream(200, {{"content-type", "text/event-stream"}, {"cache-control", "no-cache"}});
  job->Follow(reply, *after);
}

void Cancel(House& house, const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
  if (const auto job = FindRunning(house, http)) return job->Cancel(reply);
  ApiResult<Json> found = Retrieve(house, http);
  if (auto* json = std::get_if<Json>(&found)) {
    const Json* status = json->Find("status");
    if (status == nullptr || *status != Json("cancelled")) {
      ApiError error;
      error.code = "not_cancellable";
      error.message = "the response has ended; only background responses can be cancelled here";
      found = error;
    }
  }
  Answer(*reply, found);
}

void AddStoredRoutes(const std::shared_ptr<House>& house, Router& router) {
  const auto add = [&](const char* method, const char* pattern,
                       ApiResult<Json> (*answer)(House&, const HttpRequest&)) {
    router.Add(method, pattern, Auth::kKey,
               [house, answer](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
                 Answer(*reply, answer(*house, http));
               });
  };
  add("DELETE", "/v1/responses/{id}", Remove);
  add("GET", "/v1/responses/{id}/input_items", ListItems);
  router.Add("GET", "/v1/responses/{id}", Auth::kKey,
             [house](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
               if (http.query.find("stream=true") != std::string::npos) {
                 return Resume(*house, http, reply);
               }
               Answer(*reply, Retrieve(*house, http));
             });
  router.Add("POST", "/v1/responses/{id}/cancel", Auth::kKey,
             [house](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
               Cancel(*house, http, reply);
             });
}

}  // namespace

void AddResponsesRoutes(TurnService& service, ResponseStore& store, Router& router) {
  const auto house = std::make_shared<House>(store);
  Dialect dialect;
  dialect.name = "responses";
  dialect.read = [house](const Json& body, const HttpRequest& http) {
    return ReadTurn(house, body, http);
  };
  dialect.write = [house](const TurnRequest& request, const ReplyFacts& facts) {
    return NewWriter(house, request, facts);
  };
  dialect.detach = [house](const TurnRequest& request, const ReplyFacts& facts,
                           std::shared_ptr<HttpReply> client) {
    return Detach(*house, request, facts, std::move(client));
  };
  dialect.describe_error = [](const ApiError& error) { return WriteJson(OpenAiError(error)); };
  service.AddTurnRoute(router, "/v1/responses", dialect);
  service.AddAnswerRoute(router, "/v1/responses/input_tokens", dialect,
                         [&service, house](const Json& body, const HttpRequest& http) {
                           return CountTokens(service, *house, body, http);
                         });
  AddStoredRoutes(house, router);
}

}  // namespace hearth
