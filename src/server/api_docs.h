// SPDX-License-Identifier: Apache-2.0
// The API as documents, made from the tables that the parser reads: docs/api.md and OpenAPI.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/dialect.h"
namespace hearth {

// Every route of the server, in the order of the page.
std::vector<Endpoint> Endpoints();

std::string ApiMarkdown();
Json ApiOpenApi(const std::string& version);

}  // namespace hearth
