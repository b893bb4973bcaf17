// SPDX-License-Identifier: Apache-2.0
// Settings under the names of other engines: llama-server, vLLM, Ollama and those who write for
// them. What means something here becomes ours; what does not is a row that says so.
#pragma once
#include <span>
#include <string>

#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

// Part of SharedFields.
std::span<const Field> PeerFields();
// After our own names were read: two names of one setting may not say different things.
ApiStatus ReadPeerFields(const Fields& fields, TurnRequest& out);

// Variables of the model's own chat template: at most 16, each a string, a number or a boolean. The
// conversation and what the template must rely on cannot be replaced. `reasoning_effort` is read as
// the effort.
ApiStatus ReadTemplateVariables(const Json& variables, const std::string& path, TurnRequest& out);

}  // namespace hearth
