// SPDX-License-Identifier: Apache-2.0
#include "server/responses_routes.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "server/responses_request.h"
#include "server/responses_writer.h"

namespace hearth {
namespace {

struct ResponsesNotes : DialectNotes {
  std::string tenant, previous_id, input;
  bool stores = false;
  ResponsesWriter::Form form;
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

ApiResult<ResponsesRequest> ReadRequest(ResponseStore& store, const Json& body,
                                        const HttpRequest& http) {
  return ReadResponsesRequest(
      body, [&](const std::string& id) { return ItemsUpTo(store, http.key_id, id); });
}

ApiResult<TurnRequest> ReadTurn(ResponseStore& store, const Json& body, const HttpRequest& http) {
  ApiResult<ResponsesRequest> read = ReadRequest(store, body, http);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  auto& request = std::get<ResponsesRequest>(read);
  auto notes = std::make_shared<ResponsesNotes>();
  notes->tenant = http.key_id;
  notes->previous_id = request.previous_id;
  notes->stores = request.stores;
  if (request.stores) notes->input = WriteJson(Json(std::move(request.input)));
  notes->form.echo = std::move(request.echo);
  notes->form.wants_encrypted_reasoning = request.wants_encrypted_reasoning;
  request.turn.notes = std::move(notes);
  return std::move(request.turn);
}

std::unique_ptr<ReplyWriter> NewWriter(ResponseStore& store, const TurnRequest& request,
                                       const ReplyFacts& facts) {
  const auto notes = std::static_pointer_cast<const ResponsesNotes>(request.notes);
  ResponsesWriter::Form form = notes->form;
  if (notes->stores) {
    form.keep = [&store, notes](const std::string& id, const std::string& response) {
      // A full disk must not take the reply with it: the client has it, and hears 404 later.
      const Status kept = store.Put(notes->tenant, {id, notes->previous_id, notes->input, response},
                                    std::time(nullptr));
      static_cast<void>(kept);
    };
  }
  return std::make_unique<ResponsesWriter>(facts, std::move(form));
}

ApiResult<Json> CountTokens(const TurnService& service, ResponseStore& store, const Json& body,
                            const HttpRequest& http) {
  ApiResult<ResponsesRequest> read = ReadRequest(store, body, http);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  ApiResult<int64_t> count = service.CountTokens(std::get<ResponsesRequest>(std::move(read)).turn);
  if (auto* error = std::get_if<ApiError>(&count)) return std::move(*error);
  return Json(
      JsonObject{{"object", "response.input_tokens"}, {"input_tokens", std::get<int64_t>(count)}});
}

// A stored response of whoever asks.
ApiResult<StoredResponse> FindStored(ResponseStore& store, const HttpRequest& http) {
  const std::string& id = http.path_captures[0];
  Result<std::optional<StoredResponse>> found = store.Get(http.key_id, id, std::time(nullptr));
  if (!found.ok()) return FromStatus(found.status());
  if (!*found) return NotFound("response_id", id);
  return **std::move(found);
}

ApiResult<Json> Retrieve(ResponseStore& store, const HttpRequest& http) {
  ApiResult<StoredResponse> found = FindStored(store, http);
  if (auto* error = std::get_if<ApiError>(&found)) return std::move(*error);
  Result<Json> json = ParseJson(std::get<StoredResponse>(found).response);
  if (!json.ok()) return FromStatus(Status(Code::kCorrupt, "a stored response is broken"));
  return *std::move(json);
}

ApiResult<Json> Cancel(ResponseStore& store, const HttpRequest& http) {
  ApiResult<StoredResponse> found = FindStored(store, http);
  if (auto* error = std::get_if<ApiError>(&found)) return std::move(*error);
  ApiError error;
  error.code = "not_cancellable";
  error.message = "the response has ended; close the connection to cancel one that runs";
  return error;
}

ApiResult<Json> Remove(ResponseStore& store, const HttpRequest& http) {
  const std::string& id = http.path_captures[0];
  Result<bool> removed = store.Delete(http.key_id, id);
  if (!removed.ok()) return FromStatus(removed.status());
  if (!*removed) return NotFound("response_id", id);
  return Json(JsonObject{{"id", id}, {"object", "response"}, {"deleted", true}});
}

// The items of its own turn, the newest first unless `order=asc`, all on one page.
ApiResult<Json> ListItems(ResponseStore& store, const HttpRequest& http) {
  ApiResult<StoredResponse> found = FindStored(store, http);
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

void AddStoredRoute(Router& router, const char* method, const char* pattern, ResponseStore& store,
                    ApiResult<Json> (*answer)(ResponseStore&, const HttpRequest&)) {
  router.Add(method, pattern, Auth::kKey,
             [&store, answer](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
               const ApiResult<Json> json = answer(store, http);
               if (const auto* error = std::get_if<ApiError>(&json)) {
                 return SendError(*reply, *error, WriteJson(OpenAiError(*error)), "");
               }
               SendJson(*reply, std::get<Json>(json));
             });
}

}  // namespace

void AddResponsesRoutes(TurnService& service, ResponseStore& store, Router& router) {
  Dialect dialect;
  dialect.name = "responses";
  dialect.read = [&store](const Json& body, const HttpRequest& http) {
    return ReadTurn(store, body, http);
  };
  dialect.write = [&store](const TurnRequest& request, const ReplyFacts& facts) {
    return NewWriter(store, request, facts);
  };
  dialect.describe_error = [](const ApiError& error) { return WriteJson(OpenAiError(error)); };
  service.AddTurnRoute(router, "/v1/responses", dialect);
  service.AddAnswerRoute(router, "/v1/responses/input_tokens", dialect,
                         [&](const Json& body, const HttpRequest& http) {
                           return CountTokens(service, store, body, http);
                         });
  AddStoredRoute(router, "GET", "/v1/responses/{id}", store, Retrieve);
  AddStoredRoute(router, "DELETE", "/v1/responses/{id}", store, Remove);
  AddStoredRoute(router, "GET", "/v1/responses/{id}/input_items", store, ListItems);
  AddStoredRoute(router, "POST", "/v1/responses/{id}/cancel", store, Cancel);
}

}  // namespace hearth
