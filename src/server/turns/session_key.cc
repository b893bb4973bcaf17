// SPDX-License-Identifier: Apache-2.0
#include "server/turns/session_key.h"

#include <algorithm>

#include "base/result.h"
#include "server/access/request_digest.h"

namespace hearth {
namespace {

constexpr size_t kMaxGiven = 256;

// What somebody calls himself does not belong into headers, which proxies log.
std::string Hashed(const char* kind, const std::string& text) {
  return Printf("%016llx", static_cast<unsigned long long>(DigestOfRequest(kind, text)[0]));
}

std::string Opening(const Json& body) {
  const Json* messages = body.Find("messages");
  if (messages == nullptr) messages = body.Find("input");  // of /v1/responses
  const JsonArray* list = messages == nullptr ? nullptr : messages->array();
  if (list == nullptr || list->empty()) return "";
  std::string opening = WriteJson(list->front());
  const Json* role = list->front().Find("role");
  const bool is_users = role != nullptr && role->string() != nullptr && *role->string() == "user";
  if (!is_users && list->size() > 1) opening += WriteJson((*list)[1]);
  return opening;
}

}  // namespace

std::string SessionKeyOf(const HttpRequest& http, const Json& body) {
  const std::string_view given = http.header(kSessionHeader);
  const bool is_plain =
      std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!given.empty() && given.size() <= kMaxGiven && is_plain) return std::string(given);
  if (body.object() == nullptr) return "";
  for (const char* name : {"prompt_cache_key", "user"}) {
    const Json* field = body.Find(name);
    if (field == nullptr || field->string() == nullptr || field->string()->empty()) continue;
    return Hashed(name, *field->string());
  }
  const std::string opening = Opening(body);
  return opening.empty() ? "" : Hashed("messages", opening);
}

}  // namespace hearth
