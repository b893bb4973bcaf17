// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/messages/anthropic_routes.h"

#include <memory>
#include <utility>

#include "server/dialects/messages/anthropic_request.h"
#include "server/dialects/messages/anthropic_writer.h"

namespace hearth {
namespace {

struct MessagesNotes : DialectNotes {
  bool shows_thinking = false;
};

ApiResult<TurnRequest> Read(const Json& body) {
  ApiResult<MessagesRequest> read = ReadMessagesRequest(body, false);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  auto& request = std::get<MessagesRequest>(read);
  auto notes = std::make_shared<MessagesNotes>();
  notes->shows_thinking = request.shows_thinking;
  request.turn.notes = std::move(notes);
  return std::move(request.turn);
}

ApiResult<Json> CountTokens(const TurnService& service, const Json& body) {
  ApiResult<MessagesRequest> read = ReadMessagesRequest(body, true);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  ApiResult<int64_t> count = service.CountTokens(std::get<MessagesRequest>(std::move(read)).turn);
  if (auto* error = std::get_if<ApiError>(&count)) return std::move(*error);
  return Json(JsonObject{{"input_tokens", std::get<int64_t>(count)}});
}

}  // namespace

void AddAnthropicRoutes(TurnService& service, Router& router) {
  Dialect dialect;
  dialect.name = "messages";
  dialect.read = [](const Json& body, const HttpRequest&) { return Read(body); };
  dialect.write = [](const TurnRequest& request, const ReplyFacts& facts) {
    const auto& notes = static_cast<const MessagesNotes&>(*request.notes);
    return std::make_unique<MessagesWriter>(facts, notes.shows_thinking);
  };
  dialect.describe_error = [](const ApiError& error) { return WriteJson(AnthropicError(error)); };
  service.AddTurnRoute(router, "/v1/messages", dialect);
  service.AddAnswerRoute(
      router, "/v1/messages/count_tokens", dialect,
      [&service](const Json& body, const HttpRequest&) { return CountTokens(service, body); });
}

}  // namespace hearth
