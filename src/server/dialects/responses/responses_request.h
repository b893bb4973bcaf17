// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/responses, read and checked.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "server/dialects/responses/responses_items.h"
#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

std::span<const Field> ResponsesFields();

struct ResponsesRequest {
  TurnRequest turn;
  JsonArray input;          // this turn's items, as they will be stored and listed
  std::string previous_id;  // empty: none
  bool stores = true;
  bool is_background = false;  // goes on when its client goes
  bool wants_encrypted_reasoning = false;
  ToolAliases aliases;   // what the client calls the functions that the model knows
  JsonArray told_tools;  // of the request's, those that the model is told of
  JsonObject echo;       // settings that the response repeats; open ones are null
};

// All items of the response of that id and of those before it, in order.
using ItemsBefore = std::function<ApiResult<JsonArray>(const std::string& previous_id)>;

ApiResult<ResponsesRequest> ReadResponsesRequest(const Json& body, const ItemsBefore& before,
                                                 const Decrypt& decrypt);

}  // namespace hearth
