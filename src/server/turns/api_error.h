// SPDX-License-Identifier: Apache-2.0
// What a client hears when something is refused: one type for every dialect.
#pragma once
#include <string>
#include <variant>

#include "base/json.h"
#include "base/result.h"
namespace hearth {

struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string code;   // stable, for programs; empty: null
  std::string param;  // the field at fault; empty: null
  std::string message;
  double retry_after_s = 0;  // above 0 it becomes a Retry-After header
  std::string request_id;    // of the request it answers, for dialects that repeat it in the body
};

// A field that was refused, by its name as the client wrote it.
ApiError BadField(std::string param, std::string message, std::string code = "");
ApiError UnknownField(std::string param);
// An engine's or parser's complaint. Only here do codes become HTTP.
ApiError FromStatus(const Status& status);

// {"error": {"message", "type", "param", "code"}}
Json OpenAiError(const ApiError& error);

template <class T>
using ApiResult = std::variant<T, ApiError>;

}  // namespace hearth
