// SPDX-License-Identifier: Apache-2.0
// What a client hears when something is refused: one type for every dialect, and Status and Result
// of base/result.h with that type in place of a code. HEARTH_TRY and HEARTH_ASSIGN work with both.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
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
// `hint` follows the name: what was probably meant.
ApiError UnknownField(std::string param, const std::string& hint = "");
// An engine's or parser's complaint. Only here do codes become HTTP.
ApiError FromStatus(const Status& status);

// {"error": {"message", "type", "param", "code"}}
Json OpenAiError(const ApiError& error);

// Nothing to say, or why not.
class [[nodiscard]] ApiStatus {
 public:
  ApiStatus() = default;
  ApiStatus(ApiError error) : error_(std::move(error)) {}
  ApiStatus(const Status& status) {
    if (!status.ok()) error_ = FromStatus(status);
  }
  bool ok() const { return !error_.has_value(); }
  const ApiError& error() const& {
    HEARTH_CHECK(!ok());
    return *error_;
  }
  ApiError error() && {
    HEARTH_CHECK(!ok());
    return *std::move(error_);
  }

 private:
  std::optional<ApiError> error_;
};

// A T, or why not.
template <class T>
class [[nodiscard]] ApiResult {
 public:
  ApiResult(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  ApiResult(ApiError error) : v_(std::in_place_index<1>, std::move(error)) {}
  ApiResult(ApiStatus status) : ApiResult(std::move(status).error()) {}  // never an ok one
  ApiResult(const Status& status) : ApiResult(ApiStatus(status)) {}
  bool ok() const { return v_.index() == 0; }
  T& operator*() & { return *Get(); }
  T&& operator*() && { return std::move(*Get()); }
  T* operator->() { return Get(); }
  const ApiError& error() const {
    HEARTH_CHECK(!ok());
    return *std::get_if<1>(&v_);
  }
  ApiStatus status() && { return ok() ? ApiStatus() : std::move(*std::get_if<1>(&v_)); }

 private:
  T* Get() {
    HEARTH_CHECK(ok());
    return std::get_if<0>(&v_);
  }
  std::variant<T, ApiError> v_;
};

// A body that could not be parsed, with what a person most likely did where that can be seen.
ApiError NotJson(const std::string& body, const Status& status);

}  // namespace hearth
