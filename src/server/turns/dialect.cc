// SPDX-License-Identifier: Apache-2.0
#include "server/turns/dialect.h"

#include "base/check.h"

namespace hearth {

ApiResult<DialectTurn> Dialect::Read(const Json&, const HttpRequest&) const {
  HEARTH_CHECK(false);  // a route without an answer in a dialect without a reader
  return ApiError();
}

std::string Dialect::DescribeError(const ApiError& error) const {
  return WriteJson(OpenAiError(error));
}

// JSON text holds no line breaks, so one data line is always enough.
std::string AsEvent(const Json& json) { return "data: " + WriteJson(json) + "\n\n"; }

std::string AsEvent(const std::string& name, const Json& json) {
  return "event: " + name + "\n" + AsEvent(json);
}

Json ProgressAsJson(const PromptProgress& progress) {
  return JsonObject{
      {"total", progress.total}, {"cache", progress.cached}, {"processed", progress.processed}};
}

}  // namespace hearth
