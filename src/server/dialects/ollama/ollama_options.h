// SPDX-License-Identifier: Apache-2.0
// The member `options` of Ollama's requests: sampling, and settings of the machine that a request
// cannot change here.
#pragma once
#include <span>

#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

std::span<const Field> OllamaOptions();

// Reads `options` into `out`; those without effect are named in `out.ignored_fields`.
ApiStatus ReadOllamaOptions(const Json& options, TurnRequest& out);
// The same checks for requests that sample nothing: every option that is given is without effect.
ApiStatus IgnoreOllamaOptions(const Json& options, TurnRequest& out);

}  // namespace hearth
