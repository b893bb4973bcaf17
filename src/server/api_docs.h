// SPDX-License-Identifier: Apache-2.0
// The API as documents, made from the tables that the parser reads: docs/api.md and OpenAPI.
#pragma once
#include <span>
#include <string>

#include "base/json.h"
#include "http/router.h"
#include "server/dialects/fields.h"
namespace hearth {

struct Endpoint {
  std::string method, path;
  Auth auth;
  std::string summary;
  std::span<const Field> fields = {};  // of the body
};

// Every route of the server, in the order of the page.
std::vector<Endpoint> Endpoints();

std::string ApiMarkdown();
Json ApiOpenApi(const std::string& version);

}  // namespace hearth
