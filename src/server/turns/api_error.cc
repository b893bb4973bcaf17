// SPDX-License-Identifier: Apache-2.0
#include "server/turns/api_error.h"

#include <utility>

namespace hearth {

ApiError BadField(std::string param, std::string message, std::string code) {
  ApiError error;
  error.code = std::move(code);
  error.message = param + ": " + message;
  error.param = std::move(param);
  return error;
}

ApiError UnknownField(std::string param, const std::string& hint) {
  ApiError error;
  error.code = "unknown_parameter";
  error.message = "Unknown field " + Quoted(param) + hint;
  error.param = std::move(param);
  return error;
}

ApiError FromStatus(const Status& status) {
  ApiError error;
  error.message = status.message();
  switch (status.code()) {
    case Code::kInvalid:
      break;
    case Code::kUnsupported:
      error.code = "unsupported";
      break;
    case Code::kNotFound:
      error.status = 404;
      error.code = "not_found";
      break;
    case Code::kExhausted:
      error.status = 429;
      error.type = "rate_limit_error";
      error.code = "overloaded";
      break;
    case Code::kCancelled:
      error.status = 503;
      error.type = "server_error";
      error.code = "shutting_down";
      break;
    case Code::kOk:
    case Code::kCorrupt:
    case Code::kIo:
      error.status = 500;
      error.type = "server_error";
      error.code = "internal_error";
      break;
  }
  return error;
}

Json OpenAiError(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return JsonObject{{"error", JsonObject{{"message", error.message},
                                         {"type", error.type},
                                         {"param", or_null(error.param)},
                                         {"code", or_null(error.code)}}}};
}

ApiError NotJson(const std::string& body, const Status& status) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  const size_t second = first == std::string::npos ? first : body.find_first_not_of(" ", first + 1);
  std::string what = "invalid request body: " + status.message();
  if (first == std::string::npos) what = "the request body is empty; expected a JSON object";
  if (second != std::string::npos && body[first] == '{' && body[second] == '\'') {
    what += "; names and strings need double quotes";
  }
  ApiError error = FromStatus(Status(Code::kInvalid, std::move(what)));
  error.code = "invalid_json";
  return error;
}

}  // namespace hearth
